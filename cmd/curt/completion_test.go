package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCompletion types in a shell that has read the script.
func TestCompletion(t *testing.T) {
	code, script, errs := curt(t.Context(), "completion", "bash")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	file := filepath.Join(t.TempDir(), "curt.bash")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	complete := func(line string) []string {
		t.Helper()
		words := strings.Split(line, " ")
		cmd := exec.CommandContext(t.Context(), "bash", "--norc", "-euc",
			`. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _curt || true; printf '%s\n' "${COMPREPLY[@]}"`, "bash", file)
		cmd.Args = append(cmd.Args, words...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v %s", line, err, out)
		}
		return strings.Fields(string(out))
	}
	for line, want := range map[string][]string{
		"curt lin":                   {"links"},
		"curt links d":               {"delete", "disable"},
		"curt links disable --d":     {"--destination", "--dry-run"},
		"curt shorten --tag x --ded": {"--dedupe"},
		"curt --server":              nil,
		"curt nonsense l":            {"links"},
		"curt config print --lane":   {"--lane"},
	} {
		if got := complete(line); !slices.Equal(got, want) {
			t.Errorf("%q completes to %q, want %q", line, got, want)
		}
	}
	if got := complete("curt "); !slices.Contains(got, "serve") || !slices.Contains(got, "doctor") {
		t.Errorf("the commands are %q", got)
	}
	if code, _, _ := curt(t.Context(), "completion", "tcsh"); code != exitUsage {
		t.Errorf("an unknown shell: exit %d", code)
	}
}

// The other shells are not at hand everywhere: their scripts hold every command and flag.
func TestCompletionOfOtherShells(t *testing.T) {
	for _, shell := range []string{"zsh", "fish"} {
		code, script, errs := curt(t.Context(), "completion", shell)
		if code != 0 || errs != "" {
			t.Fatalf("exit %d: %s", code, errs)
		}
		for _, word := range []string{"links disable", "dry-run", "keys rotate", "overlap", "completion"} {
			if !strings.Contains(script, word) {
				t.Errorf("%s lacks %s", shell, word)
			}
		}
		if path, err := exec.LookPath(shell); err == nil {
			cmd := exec.CommandContext(t.Context(), path, "-n", "/dev/stdin")
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v %s", shell, err, out)
			}
		}
	}
}
