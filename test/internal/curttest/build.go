package curttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binaryEnv names the binary under test. When it is unset, Main builds one.
const binaryEnv = "CURT_BIN"

// longEnv asks for the long versions of the fault tests (make soak).
const longEnv = "CURT_TEST_LONG"

// Main is the TestMain of a package that runs the binary: it builds curt unless
// CURT_BIN names one, runs the tests, and removes what it built. The result is the
// exit code.
func Main(m *testing.M) int {
	if os.Getenv(binaryEnv) != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "curt-bin-")
	if err == nil {
		err = build(context.Background(), filepath.Join(dir, "curt"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "curttest:", errors.Join(err, os.RemoveAll(dir)))
		return 1
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "curttest:", err)
		return 1
	}
	return code
}

// build compiles cmd/curt to the path and names it in the environment, where
// Binary and a re-executed test find it.
func build(ctx context.Context, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "curt/cmd/curt") //nolint:gosec // the arguments are ours
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build curt: %w\n%s", err, out)
	}
	return os.Setenv(binaryEnv, path)
}

// Binary returns the path of the curt under test.
func Binary(t testing.TB) string {
	t.Helper()
	path := os.Getenv(binaryEnv)
	if path == "" {
		t.Fatalf("no binary: the package's TestMain must call curttest.Main, or set %s", binaryEnv)
	}
	return path
}

// BuildOf builds the program of a commit of this repository, for a test two folders below its root. A
// history without the commit skips the test.
func BuildOf(t *testing.T, commit string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.CommandContext(t.Context(), "git", "-C", root, "cat-file", "-e", commit).Run(); err != nil { //nolint:gosec // the arguments are ours
		t.Skipf("the history of this checkout does not have commit %s: %v", commit, err)
	}
	source := filepath.Join(t.TempDir(), "source")
	binary := filepath.Join(t.TempDir(), "curt")
	run := func(dir, name string, args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), name, args...) //nolint:gosec // the arguments are ours
		c.Dir, c.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	run(root, "git", "clone", "--quiet", "--shared", "--no-checkout", root, source)
	run(source, "git", "checkout", "--quiet", commit)
	run(source, "go", "build", "-trimpath", "-o", binary, "./cmd/curt")
	return binary
}

// Long reports whether the long versions of tests were asked for.
func Long() bool { return os.Getenv(longEnv) != "" }

// Need ends the test because the machine lacks something, in one line that says
// what. Under CI=true that is a failure: a machine that is there to prove things
// must be able to.
func Need(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("this test needs %s", what)
	}
	t.Skipf("NOT PROVEN HERE: this test needs %s", what)
}
