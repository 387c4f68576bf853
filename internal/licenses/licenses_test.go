package licenses_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"curt/internal/licenses"
)

// TestWriteTo: a program says what is in it, or how that is put in.
func TestWriteTo(t *testing.T) {
	var b strings.Builder
	err := licenses.WriteTo(&b)
	if _, gathered := os.Stat("texts/" + licenses.File); gathered != nil {
		if !errors.Is(err, licenses.ErrMissing) || b.Len() > 0 || !strings.Contains(err.Error(), "scripts/licenses") {
			t.Errorf("without the texts: %q, %v", b.String(), err)
		}
		return
	}
	if err != nil || !strings.Contains(b.String(), "go.mau.fi/util") || !strings.Contains(b.String(), "svelte") {
		t.Errorf("%d bytes, %v", b.Len(), err)
	}
}
