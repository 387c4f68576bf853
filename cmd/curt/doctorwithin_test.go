package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"curt/internal/cli"
)

// What takes long ends in time, says how far it came, and how to have the rest read.
func TestDoctorSaysHowFarItCame(t *testing.T) {
	dir, list := inhabited(t), filepath.Join(t.TempDir(), "bad.txt")
	if err := os.WriteFile(list, []byte("host-1.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, found := examine(t, dir, "--within=1ns", "--blocklists="+list)
	if code == 0 || !has(found, "decisions", "warning", "up to entry 0 of 2") || !has(found, "links", "warning", "0 of at most ") {
		t.Errorf("exit %d: %+v", code, found)
	}
	for _, f := range found {
		if (f.Check == "links" || f.Check == "decisions") && f.Level == "warning" && !strings.Contains(f.Advice, "--within 0") {
			t.Errorf("%+v does not say how to go on", f)
		}
		if strings.Contains(f.Text, "all links match") || strings.Contains(f.Text, "no link points") {
			t.Errorf("%+v is said of what was not read", f)
		}
	}
	for _, whole := range [][]string{{"--within=0"}, {"--within=1ns", "--all"}} {
		_, found = examine(t, dir, append(whole, "--blocklists="+list)...)
		if !has(found, "decisions", "ok", "all links match") || !has(found, "links", "ok", "5 including deleted") || !has(found, "blocklists", "warning", "1 links point") {
			t.Errorf("%v: %+v", whole, found)
		}
		for _, f := range found {
			if f.Check == "blocklists" && f.Level == "warning" && !strings.Contains(f.Advice, "CURT_RECHECK") {
				t.Errorf("%+v does not say that links are judged again", f)
			}
		}
	}
	if code, _, errs := curt(t.Context(), "doctor", "--within=-1s", "--data="+dir); code != cli.ExitUsage || !strings.Contains(errs, "--within") {
		t.Errorf("a negative time: exit %d, %s", code, errs)
	}
}
