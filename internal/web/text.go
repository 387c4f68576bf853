package web

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// text returns s with every character spelled out that would not be seen, or would move
// what is seen: control characters, separators of lines, marks of direction, blanks
// without a width. A reader is never shown another order of letters than there is.
// Joiners stay, because alphabets need them.
func text(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, unseen) {
		return s
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if unseen(r) {
			fmt.Fprintf(&b, "[U+%04X]", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unseen(r rune) bool {
	const nonJoiner, joiner = '\u200C', '\u200D'
	switch {
	case r == nonJoiner || r == joiner:
		return false
	case unicode.Is(unicode.Cf, r), unicode.IsControl(r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r), unicode.Is(unicode.Co, r):
		return true
	}
	return r == '\u3164' || r == '\u115F' || r == '\u1160' || r == '\uFFA0' // letters that are blank
}
