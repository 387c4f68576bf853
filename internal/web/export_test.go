package web

import (
	"io/fs"
	"testing"
)

// Text is how pages show what a stranger chose.
func Text(s string) string { return text(s) }

// ReadDashboard reads a dashboard from the folder dist of files.
func ReadDashboard(t testing.TB, files fs.FS) *Dashboard {
	t.Helper()
	d, err := readDashboard(files, "dist")
	if err != nil {
		t.Fatal(err)
	}
	return d
}
