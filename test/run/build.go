package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
)

// build is one call of `go test -c`, for packages of one module and one set of flags.
type build struct {
	folder   string // of its binaries
	dir      string // of its module; "" = this one
	args     []string
	env      []string
	packages []string
}

// split returns builds in which no two packages have the same last element: that is what
// `go test -c` calls their binaries.
func (b build) split() (all []build) {
	for rest := b.packages; len(rest) > 0; {
		taken, now, later := map[string]bool{}, []string{}, []string{}
		for _, p := range rest {
			if base := path.Base(p); taken[base] {
				later = append(later, p)
			} else {
				taken[base] = true
				now = append(now, p)
			}
		}
		next := b
		next.folder, next.packages = fmt.Sprintf("%s-%d", b.folder, len(all)+1), now
		all = append(all, next)
		rest = later
	}
	return all
}

// binary is where the binary of a package lies.
func (b build) binary(pkg string) string { return filepath.Join(b.folder, path.Base(pkg)+".test") }

// run compiles. What is up to date is left as it is.
func (b build) run(ctx context.Context) error {
	if err := os.MkdirAll(b.folder, 0o755); err != nil {
		return fmt.Errorf("compile tests: %w", err)
	}
	// `make check` has what go vet finds; debuggers have their own builds.
	args := slices.Concat([]string{"test", "-c", "-vet=off", "-trimpath", "-ldflags=-s -w", "-o", b.folder + "/"}, b.args, b.packages)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the arguments are ours
	cmd.Dir, cmd.Env = b.dir, append(os.Environ(), b.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile tests: %w\n%s", errors.Join(err, ctx.Err()), out)
	}
	return nil
}
