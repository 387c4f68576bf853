package clicks

import (
	"strings"
	"unicode"
)

// Plain returns a text that a stranger sent without what no report may meet, in a terminal, a
// file or a page: control characters (C0 and C1), ends of lines, marks that turn the direction
// of writing, and what is no UTF-8.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == unicode.ReplacementChar, r == '\u2028', r == '\u2029', unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, s)
}
