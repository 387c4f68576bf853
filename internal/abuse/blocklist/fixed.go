package blocklist

import (
	"fmt"
	"strings"

	"curt/internal/abuse/listfile"
)

// WordsOf returns refused words from memory, under the name of a list. They never change: their
// owner replaces them as a whole.
func WordsOf(name string, lines []string) (*Words, error) {
	s, err := fixed(name, refuses, words, lines)
	return &Words{s}, err
}

// AllowOf is WordsOf for an allow-list of destinations.
func AllowOf(name string, lines []string) (*Lists, error) {
	s, err := fixed(name, allows, destinations(true), lines)
	return &Lists{s}, err
}

func fixed(name string, as role, parse syntax, lines []string) (set, error) {
	s := set{files: listfile.NewSet(nil, nil), seeds: newSeeds()}
	if len(lines) == 0 {
		return s, nil
	}
	text := strings.Join(lines, "\n") + "\n" // a file without it is half-written
	version, err := twice(strings.NewReader(text), int64(len(text)), parse, s.seeds, listfile.MaxEntries)
	if err != nil {
		return s, fmt.Errorf("read the list %s: %w", name, err)
	}
	l := &list{name: name, role: as}
	l.now.Store(version)
	s.all = append(s.all, l)
	return s, nil
}

// ParseWord returns the canonical form of a line of words without a comment; false = no alias can
// match it.
func ParseWord(line string) (string, bool) {
	var e entry
	if strings.ContainsRune(line, '#') || e.word(line) != meant {
		return "", false
	}
	switch e.kind {
	case ofAlike:
		return strings.ToLower(line), true
	case ofPrefix:
		return e.text + "*", true
	default:
		return e.text, true
	}
}
