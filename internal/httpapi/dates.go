package httpapi

import (
	"errors"
	"time"
)

// errDate is what is wrong with every date that parseDate refuses.
var errDate = errors.New("want a date like 2027-01-31T12:00:00Z, with an offset; seconds and fractions may be left out")

// parseDate reads an RFC 3339 date whose seconds may be missing. time.Parse reads
// more than that (a comma before the fraction, one-digit hours) and is not used
// to judge the shape.
func parseDate(s string) (time.Time, error) {
	const shape = "dddd-dd-ddTdd:dd"
	if len(s) < len(shape)+1 || len(s) > len("2006-01-02T15:04:05.123456789+00:00") {
		return time.Time{}, errDate
	}
	for i := range len(shape) {
		if !fits(shape[i], s[i]) {
			return time.Time{}, errDate
		}
	}
	rest := s[len(shape):]
	seconds := ":00"
	if rest[0] == ':' {
		n := secondsLength(rest)
		if n == 0 || n == len(rest) {
			return time.Time{}, errDate
		}
		seconds, rest = rest[:n], rest[n:]
	}
	if rest == "z" {
		rest = "Z"
	}
	if !validOffset(rest) {
		return time.Time{}, errDate
	}
	t, err := time.Parse(time.RFC3339Nano, s[:10]+"T"+s[11:16]+seconds+rest)
	if err != nil {
		return time.Time{}, errDate
	}
	return t.UTC(), nil
}

func fits(shape, c byte) bool {
	switch shape {
	case 'd':
		return digit(c)
	case 'T':
		return c == 'T' || c == 't'
	}
	return c == shape
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// secondsLength returns the length of ":dd" or ":dd.d…" at the start of s, or 0.
func secondsLength(s string) int {
	if len(s) < 3 || !digit(s[1]) || !digit(s[2]) {
		return 0
	}
	n := 3
	if len(s) == n || s[n] != '.' {
		return n
	}
	for n++; n < len(s) && digit(s[n]); n++ {
	}
	if n == len(":00.") {
		return 0
	}
	return n
}

// validOffset reports whether s is Z or ±dd:dd within a day.
func validOffset(s string) bool {
	if s == "Z" {
		return true
	}
	return len(s) == 6 && (s[0] == '+' || s[0] == '-') && digit(s[1]) && digit(s[2]) &&
		s[3] == ':' && digit(s[4]) && digit(s[5]) && s[1:3] <= "23" && s[4:6] <= "59"
}
