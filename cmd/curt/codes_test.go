package main

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"curt/internal/cli"
)

// The number of links is that of the folder, with or without a server on it.
func TestCodesCompareCountsTheLinks(t *testing.T) {
	compare := func(args ...string) (code int, strategies map[string]float64, errs string) {
		t.Helper()
		code, out, errs := curt(t.Context(), append([]string{"codes", "compare", "--sample=1000", "--json"}, args...)...)
		strategies = map[string]float64{}
		for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
			var m struct {
				Strategy string
				Guesses  float64 `json:"guesses_per_link"`
			}
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				t.Fatalf("%s: %v", lines.Text(), err)
			}
			strategies[m.Strategy] = m.Guesses
		}
		return code, strategies, errs
	}
	folder := inhabited(t)
	code, inFolder, errs := compare("--data=" + folder)
	if _, said, _ := strings.Cut(errs, "\n"); code != 0 || len(inFolder) < 5 || strings.HasPrefix(errs, "0 links") {
		t.Errorf("exit %d, %v: %s%s", code, inFolder, errs, said)
	}
	if code, empty, errs := compare("--data=" + t.TempDir()); code != 0 || !strings.HasPrefix(errs, "0 links exist") || len(empty) != len(inFolder) {
		t.Errorf("an empty folder: exit %d, %s", code, errs)
	}
	if code, many, _ := compare("--existing=916132832", "--code-length=5"); code != 0 || many["random"] != 1 {
		t.Errorf("a space that is full: exit %d, %v", code, many)
	}
	for _, wrong := range []string{"--sample=10", "--existing=-7"} {
		if code, _, errs := compare(wrong); code != cli.ExitUsage || !strings.Contains(errs, "expected") {
			t.Errorf("%s: exit %d, %s", wrong, code, errs)
		}
	}
	if code, _, _ := compare("--code-length=3"); code != cli.ExitConfig {
		t.Errorf("a wrong setting: exit %d", code)
	}
}
