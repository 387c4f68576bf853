package main

import (
	"strings"
	"testing"

	"curt/internal/cli"
)

func TestSharesThatCannotBeMeant(t *testing.T) {
	t.Setenv("CURT_SERVER", "http://127.0.0.1:1")
	for _, lasts := range []string{"0s", "-1s", "1500ms"} {
		code, out, errs := curt(t.Context(), "links", "share", "abc", "--for="+lasts)
		if code != cli.ExitUsage || out != "" || !strings.Contains(errs, "--for") {
			t.Errorf("%s: %d %q %q", lasts, code, out, errs)
		}
	}
	if code, _, errs := curt(t.Context(), "links", "share", "abc", "--for=0s", "--end"); code != cli.ExitUsage {
		t.Errorf("both: %d %q", code, errs)
	}
}
