package analytics

import (
	"errors"
	"strings"
	"time"
	_ "time/tzdata" // the binary knows the zones of the world wherever it runs
)

// ErrZone means that a text names no time zone.
var ErrZone = errors.New("expected an IANA time zone, such as Europe/Berlin")

// maxZone bounds a zone's name; the longest is 32 bytes.
const maxZone = 64

// ParseZone returns the IANA time zone of a name. It takes names of zones only,
// never what time.LoadLocation would read as the machine's own zone or as a file.
func ParseZone(name string) (*time.Location, error) {
	if len(name) > maxZone || !zoneShape(name) {
		return nil, ErrZone
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, ErrZone // why is a matter of files that the asker has not named
	}
	return zone, nil
}

// zoneShape reports whether a text has the shape of a zone's name: words of
// letters, digits, _, + and -, joined by single slashes. "Local" is the machine's
// zone, and right/ and posix/ are other forms of the database, which some machines
// have beside it and which count leap seconds.
func zoneShape(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	switch first {
	case "", "Local", "localtime", "right", "posix":
		return false
	}
	for word := range strings.SplitSeq(name, "/") {
		if word == "" || strings.ContainsFunc(word, func(r rune) bool { return !zoneLetter(r) }) {
			return false
		}
	}
	return true
}

func zoneLetter(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '+' || r == '-'
}
