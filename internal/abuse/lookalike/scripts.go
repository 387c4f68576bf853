package lookalike

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// scripts says which script a character is of, in one search: the tables of package
// unicode have to be asked one after the other. It is never changed once it is made.
type scripts struct {
	names     []string
	stretches []stretch // in order, none within another
}

// stretch is characters of one script, one after the other.
type stretch struct {
	first, last rune
	name        int
}

func newScripts() *scripts {
	s := &scripts{names: slices.Sorted(maps.Keys(unicode.Scripts))}
	for n, name := range s.names {
		table := unicode.Scripts[name]
		for _, r := range table.R16 {
			s.add(n, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range table.R32 {
			s.add(n, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	slices.SortFunc(s.stretches, func(a, b stretch) int { return cmp.Compare(a.first, b.first) })
	return s
}

func (s *scripts) add(name int, first, last, stride rune) {
	if stride == 1 {
		s.stretches = append(s.stretches, stretch{first, last, name})
		return
	}
	for r := first; r <= last; r += stride {
		s.stretches = append(s.stretches, stretch{r, r, name})
	}
}

// of returns the stretch of a character, and false of one that has no script.
func (s *scripts) of(r rune) (stretch, bool) {
	at, found := slices.BinarySearchFunc(s.stretches, r, func(one stretch, r rune) int { return cmp.Compare(one.first, r) })
	if !found {
		at--
	}
	if at < 0 || s.stretches[at].last < r {
		return stretch{}, false
	}
	return s.stretches[at], true
}

// mixture names the scripts of a label that no language mixes, in order and separated by
// commas; "" for all others. It is the level "highly restrictive" of UTS 39, section 5.2:
// Latin may stand beside what Chinese, Japanese or Korean is written with. Latin beside
// Cyrillic or Greek is how names are imitated.
func (s *scripts) mixture(label string) string {
	names, latest := make([]string, 0, 4), stretch{last: -1}
	for _, r := range label {
		if r < utf8.RuneSelf && !unicode.IsLetter(r) || latest.first <= r && r <= latest.last {
			continue // common to all, or as the one before
		}
		found := false
		if latest, found = s.of(r); !found {
			latest.last = -1
			continue
		}
		name := s.names[latest.name]
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
