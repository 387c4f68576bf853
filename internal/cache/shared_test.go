package cache

import (
	"testing"
	"unsafe"
)

func TestADestinationLiesInItsPreparedAnswer(t *testing.T) {
	whole := "Location: https://example.com/a\r\n\r\n"
	own := string([]byte("https://example.com/a"))
	got := shared(own, whole)
	if got != own || unsafe.StringData(got) == unsafe.StringData(own) {
		t.Errorf("%q keeps its own bytes", got)
	}
	if got := shared("https://example.com/b", whole); got != "https://example.com/b" {
		t.Errorf("what the answer does not say became %q", got)
	}
}
