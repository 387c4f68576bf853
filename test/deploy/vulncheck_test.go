package deploy_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A vulnerability in what is called stops a release; a database that cannot be reached is one
// line, and any other failure is one.
func TestVulncheckSaysWhatItSaw(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		program string
		code    int
		want    string
	}{
		"nothing":     {"echo No vulnerabilities found.", 0, "nothing is known"},
		"called":      {"echo 'Vulnerability #1: GO-2026-0001'; exit 3", 1, "GO-2026-0001"},
		"unreachable": {"printf 'govulncheck: fetching vulnerabilities: no such host\\nagain\\n' >&2; exit 1", 0, "NOT LOOKED"},
		"broken":      {"echo 'govulncheck: loading packages: no Go files' >&2; exit 1", 1, "no Go files"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "govulncheck")
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.program+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			said, err := exec.CommandContext(t.Context(), root+"/scripts/vulncheck", program).CombinedOutput()
			code := 0
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != c.code || !strings.Contains(string(said), c.want) {
				t.Errorf("exit code %d, want %d: %s", code, c.code, said)
			}
			if name == "unreachable" && strings.Count(string(said), "\n") != 1 {
				t.Errorf("more than a line: %s", said)
			}
		})
	}
}
