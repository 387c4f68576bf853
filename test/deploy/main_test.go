package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

// root is the repository.
const root = "../.."

// Bounds of what is downloaded, in bytes. 40 and 45 MB were held until the clients of Redis,
// Kafka and ClickHouse came, which bring 10 and 12 (docs/decisions/0027), 64 and 65 until that of DynamoDB.
const (
	maxBinary = 72_000_000
	maxImage  = 73_000_000
)

// tool returns the path of a program of bin/tools, or one that is installed.
func tool(t *testing.T, name, how string) string {
	t.Helper()
	for _, n := range []string{filepath.Join(root, "bin", "tools", name), name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(n); err == nil {
			path, err = filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	curttest.Need(t, name+" ("+how+")")
	return ""
}

// output runs a program and returns what it prints; a failure fails the test.
func output(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	text, err := run(t, dir, program, args...)
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(program), args, err, text)
	}
	return text
}

func run(t *testing.T, dir, program string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// runCurt runs a command with these variables alone.
func runCurt(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), curttest.Binary(t), args...)
	cmd.Env = env
	said, err := cmd.CombinedOutput()
	return string(said), err
}
