package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAFolderThatNoServerWouldTakeIsNotFilled: with these settings a server refuses a folder
// with links of its own, so nothing makes one.
func TestAFolderThatNoServerWouldTakeIsNotFilled(t *testing.T) {
	address, folder := serving(t)
	taken := filepath.Join(t.TempDir(), "backup")
	if code, _, errs := curt(t.Context(), "backup", "--data="+folder, taken); code != 0 {
		t.Fatalf("backup of %s: %d %s", address, code, errs)
	}
	exported := tempFile(t, "links.jsonl", "{}\n")
	t.Setenv("CURT_LINKS", "postgres://curt:hunter2@127.0.0.1:1/links")
	folder = filepath.Join(t.TempDir(), "new")
	for _, args := range [][]string{{"import", "--data=" + folder, exported}, {"restore", "--data=" + folder, taken}, {"restore", "--force", "--data=" + folder, taken}} {
		code, out, errs := curt(t.Context(), args...)
		if code != 78 || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "CURT_LINKS is a database") || strings.Contains(errs, "hunter2") {
			t.Errorf("%v: %d %q %q", args, code, out, errs)
		}
		for _, made := range []string{folder, exported + ".results.jsonl"} {
			if _, err := os.Stat(made); err == nil {
				t.Errorf("%v: made %s", args, made)
			}
		}
	}
	if code, _, errs := curt(t.Context(), "restore", "--check", "--data="+folder, taken); code != 0 {
		t.Errorf("restore --check: %d %s", code, errs)
	}
	t.Setenv("CURT_LINKS", "sqlite")
	if code, _, errs := curt(t.Context(), "restore", "--data="+folder, taken); code != 0 {
		t.Errorf("restore: %d %s", code, errs)
	}
}
