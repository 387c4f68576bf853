package abuse

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mixture names the scripts of a label that no language mixes, in order and separated by
// commas; "" for all others. It is the level "highly restrictive" of UTS 39, section 5.2:
// Latin may stand beside what Chinese, Japanese or Korean is written with. Latin beside
// Cyrillic or Greek is how names are imitated.
func mixture(label string) string {
	names, latest := make([]string, 0, 4), (*unicode.RangeTable)(nil)
	for _, r := range label {
		switch {
		case r < utf8.RuneSelf && !unicode.IsLetter(r):
			continue // common to all
		case latest != nil && unicode.Is(latest, r):
			continue
		}
		name, table := scriptOf(r)
		latest = table
		if name != "Common" && name != "Inherited" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) < 2 || written(names) {
		return ""
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// written reports whether a language is written with these scripts together.
func written(names []string) bool {
	for _, together := range [][]string{
		{"Latin", "Han", "Hiragana", "Katakana"},
		{"Latin", "Han", "Bopomofo"},
		{"Latin", "Han", "Hangul"},
	} {
		if !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(together, n) }) {
			return true
		}
	}
	return false
}

func scriptOf(r rune) (string, *unicode.RangeTable) {
	if unicode.Is(unicode.Latin, r) {
		return "Latin", unicode.Latin
	}
	for name, table := range unicode.Scripts {
		if unicode.Is(table, r) {
			return name, table
		}
	}
	return "Common", nil
}
