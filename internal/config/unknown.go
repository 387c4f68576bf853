package config

import (
	"regexp"
	"slices"
)

// unknown is the error about a name that is no setting. Its value may be a secret
// whose name was misspelt, and is then not shown.
func unknown(name, value string, known []string) *Error {
	near := nearest(name, known)
	want := "no such setting; see curt serve --help"
	if near != "" {
		want = "no such setting; did you mean " + near
	}
	if regexp.MustCompile(`(?i)key|secret|token|pass`).MatchString(name + " " + near) {
		value = Hidden
	}
	return &Error{Setting: name, Value: redact(value), Want: want}
}

// nearest returns the name with the least edits, if they are fewer than half of its
// letters; else "".
func nearest(name string, known []string) string {
	best, near := len(name)/2, ""
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := edits(name, k); d < best {
			best, near = d, k
		}
	}
	return near
}

// edits is the Levenshtein distance of two texts, in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
