package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// bench is a folder in which one mutant at a time is built and tried.
type bench struct {
	root, dir string
}

// errBuild says that a mutant does not compile, and so is none.
var errBuild = errors.New("does not compile")

// overlay writes the changed file and the list that has the go command read it instead.
func (b bench) overlay(m mutant) (string, error) {
	path := filepath.Join(b.root, m.File)
	src, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read a file to change: %w", err)
	}
	changed := filepath.Join(b.dir, "changed.go")
	text := append(append(bytes.Clone(src[:m.start]), m.To...), src[m.end:]...)
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err != nil {
		return "", fmt.Errorf("encode an overlay: %w", err)
	}
	name := filepath.Join(b.dir, "overlay.json")
	return name, errors.Join(os.WriteFile(changed, text, 0o600), os.WriteFile(name, list, 0o600)) //nolint:gosec // both in our own folder
}

// build makes the tests of a package with an overlay, which may be none.
func (b bench) build(ctx context.Context, dir, overlay, binary string, flags ...string) error {
	args := append([]string{"test", "-c", "-overlay", overlay, "-ldflags", "-s -w", "-o", binary}, flags...)
	return b.compile(ctx, append(args, "./"+dir))
}

// curt makes the program itself.
func (b bench) curt(ctx context.Context, overlay string) (string, error) {
	binary := filepath.Join(b.dir, "curt")
	return binary, b.compile(ctx, []string{"build", "-trimpath", "-overlay", overlay, "-o", binary, "./cmd/curt"})
}

func (b bench) compile(ctx context.Context, args []string) error {
	c := exec.CommandContext(ctx, "go", args...) //nolint:gosec // our own arguments
	c.Dir, c.Env = b.root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("build: %w", ctx.Err())
		}
		return fmt.Errorf("%w: %s", errBuild, out)
	}
	return nil
}

// outcome is how a run of tests ended.
type outcome struct {
	Failed []string // top-level tests, or what else ended the run
	Late   bool     // the ceiling ended it
	Took   time.Duration
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// try runs a program of tests in dir and ends it, with all that it started, at the ceiling.
// A mutant may ask for memory without end: what needs no services gets 8 GB of addresses.
// CI=true has a test fail that lacks what it needs, where it would be skipped.
func (b bench) try(ctx context.Context, dir string, bound bool, ceiling time.Duration, env []string, command ...string) (outcome, error) {
	// PostgreSQL starts as a user of its own, who must reach its folder.
	temp := filepath.Join(b.dir, "tmp")
	if err := errors.Join(os.RemoveAll(temp), os.MkdirAll(temp, 0o755)); err != nil {
		return outcome{}, fmt.Errorf("make room for tests: %w", err)
	}
	limited, stop := context.WithTimeout(ctx, ceiling)
	defer stop()
	if bound {
		command = append([]string{"sh", "-c", `ulimit -v 8388608; exec "$@"`, "sh"}, command...)
	}
	c := exec.CommandContext(limited, command[0], command[1:]...) //nolint:gosec // the tests of this repository
	c.Dir, c.Env = filepath.Join(b.root, dir), append(append(os.Environ(), "CGO_ENABLED=0", "CI=true", "TMPDIR="+temp), env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 10 * time.Second
	began := time.Now()
	out, err := c.CombinedOutput()
	o := outcome{Took: time.Since(began)}
	if ctx.Err() != nil {
		return o, fmt.Errorf("run tests: %w", ctx.Err())
	}
	if c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // what a panic has left behind
	}
	if err == nil {
		return o, nil
	}
	if limited.Err() != nil {
		o.Late, o.Failed = true, []string{"ceiling"}
		return o, nil
	}
	for _, f := range failed.FindAllSubmatch(out, -1) {
		o.Failed = append(o.Failed, string(f[1]))
	}
	if len(o.Failed) == 0 {
		o.Failed = []string{"panic"}
		if bytes.Contains(out, []byte("[build failed]")) {
			return o, fmt.Errorf("%w: %s", errBuild, out)
		}
	}
	return o, os.WriteFile(filepath.Join(b.dir, "failed.txt"), out, 0o600)
}

// only is the expression that selects tests by name.
func only(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }
