package curttest

import (
	"errors"
	"os"
	"testing"
)

// Replace gives a file another content at once, as who changes a file under a running server has to: one that is
// written in place is empty for a moment.
func Replace(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}
