package clicks_test

import (
	"testing"

	"curt/internal/clicks"
)

// turning are marks that turn the direction of writing.
const turning = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

func TestPlain(t *testing.T) {
	for sent, want := range map[string]string{
		"a\x00b\x1b[31m\x7f": "ab[31m", "a\u0080b\u009b31m\u009f": "ab31m", "a" + turning + "b": "ab", "a\u2028b\u2029": "ab",
		"a\xff\xc2\xe2\x80b": "ab", "\xed\xa0\x80x": "x", "Köln ½ 😀 \u200d": "Köln ½ 😀 \u200d", "(other)": "(other)", "": "",
	} {
		if got := clicks.Plain(sent); got != want {
			t.Errorf("Plain(%q) = %q, want %q", sent, got, want)
		}
	}
}
