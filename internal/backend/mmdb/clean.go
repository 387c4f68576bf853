package mmdb

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"curt/internal/clicks"
)

// maxText is what the click log keeps of a place's name, in bytes.
const maxText = 128

// cleanText returns a name that a report may show; empty for what is no text: a
// damaged file has bytes where names should be, and a file may not spell the words
// that statistics have for themselves.
func cleanText(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unprintable) {
		return ""
	}
	s = strings.TrimSpace(s)
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "")
	}
	if s == clicks.Other || s == clicks.Direct {
		return ""
	}
	return s
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
