package main

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// underRace are the packages whose goroutines share memory. SQLite, which is C transpiled to Go, takes ten to
// twenty times as long under the race detector: packages that have it in a hot loop run without.
var underRace = []string{
	"internal/auth/...", "internal/cache/...", "internal/clicks/...", "internal/codegen/...", "internal/httpapi/...",
	"internal/lane/...", "internal/link/...", "internal/moderation/...", "internal/ratelimit/...", "internal/redirect/...",
	"internal/review/...", "internal/shorten/...", "internal/web/...", "internal/worker/...",
}

// plain are the flags of all steps without the race detector: as bin/curt is built, so that
// nothing is compiled twice. `make check` has what go vet finds.
var (
	plain    = []string{"-vet=off", "-trimpath", "-timeout", "15m"}
	plainEnv = []string{"CGO_ENABLED=0"}
)

// correctness is `make test`.
func correctness(ctx context.Context) ([]lane, error) {
	all, err := tested(ctx, "", "./...")
	if err != nil {
		return nil, err
	}
	race, err := tested(ctx, "", prefixed(underRace)...)
	if err != nil {
		return nil, err
	}
	bench, err := tested(ctx, "bench", "./...")
	if err != nil {
		return nil, err
	}
	unraced, err := perPackage("Unraced")
	if err != nil {
		return nil, err
	}
	var rest, binary []string
	for _, p := range all {
		switch {
		case strings.HasPrefix(p, "curt/test/"):
			binary = append(binary, p)
		case !slices.Contains(race, p):
			rest = append(rest, p)
		}
	}
	return []lane{
		append(lane{{name: "race", args: []string{"-race", "-vet=off", "-timeout", "15m"}, packages: race}}, unraced...),
		{
			// Whether the binary is another one is nothing that the test cache looks at.
			{args: slices.Concat(plain, []string{"-count=1"}), env: plainEnv, packages: binary},
			{args: plain, env: plainEnv, packages: rest},
			{name: "bench", dir: "bench", args: plain, env: plainEnv, packages: bench},
		},
	}, nil
}

// proofs is `make test-faults`: the tests that call testkit.Faults, and no others.
func proofs() ([]lane, error) {
	steps, err := perPackage("Faults", "-count=1", "-timeout", "30m")
	lanes := make([]lane, 2)
	for i, s := range steps {
		lanes[i%2] = append(lanes[i%2], s)
	}
	return lanes, err
}

// perPackage returns a step for each package that has marked tests, which runs no others.
func perPackage(mark string, args ...string) (lane, error) {
	found, err := marked(mark)
	var steps lane
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		only := "^(" + strings.Join(found[dir], "|") + ")$"
		steps = append(steps, step{
			args: slices.Concat(plain, args, []string{"-run", only}), env: plainEnv, packages: []string{"./" + dir},
		})
	}
	return steps, err
}

// tested returns the packages of a module that have tests, and match a pattern.
func tested(ctx context.Context, dir string, patterns ...string) ([]string, error) {
	args := append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the arguments are ours
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(patterns, " "), err)
	}
	return strings.Fields(string(out)), nil
}

// prefixed returns patterns of go list for folders of this module.
func prefixed(folders []string) []string {
	all := make([]string, len(folders))
	for i, f := range folders {
		all[i] = "./" + f
	}
	return all
}
