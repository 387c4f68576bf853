package main

import (
	"strings"
	"testing"

	"curt/internal/cli"
)

// What the scripts offer is tried in each shell by test/cli.
func TestCompletionIsForThreeShells(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		code, script, errs := curt(t.Context(), "completion", shell)
		if code != 0 || errs != "" {
			t.Fatalf("exit %d: %s", code, errs)
		}
		for _, word := range []string{"links disable", "dry-run", "keys rotate", "overlap", "completion", "rollups"} {
			if !strings.Contains(script, word) {
				t.Errorf("%s lacks %s", shell, word)
			}
		}
	}
	if code, _, _ := curt(t.Context(), "completion", "tcsh"); code != cli.ExitUsage {
		t.Errorf("an unknown shell: exit %d", code)
	}
}
