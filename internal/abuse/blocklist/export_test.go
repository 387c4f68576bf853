package blocklist

import (
	"context"
	"encoding/hex"
	"io"
	"strings"
	"time"

	"curt/internal/weburl"
)

// Round is one round of Run.
func (b *Lists) Round(ctx context.Context, now time.Time) { b.files.Poll(ctx, now) }

// Meanings returns what a list of destinations means, as "host evil.example", and how
// many of its lines were passed over and not understood.
func Meanings(r io.Reader, turned bool) (meant []string, passed, strange int, err error) {
	c, err := destinations(turned)(r, func(e *entry) error {
		names := [kinds]string{"host ", "url ", "below ", "hash ", "not host ", "not url ", "not below "}
		text := e.text
		if e.kind == ofHash {
			text = hex.EncodeToString([]byte(text))
		}
		meant = append(meant, names[e.kind]+text)
		return nil
	})
	return meant, c.passed.N, c.strange.N, err
}

// MeaningsWith is Meanings with a keep that fails.
func MeaningsWith(r io.Reader, err error) error {
	_, err = destinations(false)(r, func(*entry) error { return err })
	return err
}

// Names are the names of a URL's host that lists are asked about, the nearest first.
func Names(u weburl.URL) []string {
	var q question
	q.about(u)
	var names []string
	for _, host := range q.hosts[:q.n] {
		for name, ok := host, true; ok && means(name, host); name, ok = above(name) {
			names = append(names, name)
		}
	}
	return names
}

// Expression returns what a URL is compared by, with a "|" at each border.
func Expression(u weburl.URL) string {
	var x expression
	x.of(u, u.Hosts()[0])
	var s strings.Builder
	from := 0
	for at, ok := x.host, true; ok; at, ok = x.border(at) {
		s.Write(x.text()[from:at])
		s.WriteByte('|')
		from = at
	}
	return s.String()
}

// Digests makes a set of what each calls its argument with, twice, expecting so many.
func Digests(expected int64, each func(add func(uint64))) (has func(uint64) bool, n, size int, ok bool) {
	count := newTally(expected)
	each(count.add)
	b := count.builder()
	came := true
	each(func(d uint64) { came = b.add(d) && came })
	s, ok := b.set()
	return s.has, s.len(), s.size(), ok && came
}

// Read reads a list of hosts with room for so many entries and returns how many are
// kept, in how many bytes, and whether a host is among them.
func Read(path string, room int) (entries, size int, has func(host string) bool, err error) {
	s := newSeeds()
	e, _, err := read(path, destinations(false), s, room)
	if err != nil {
		return 0, 0, nil, err
	}
	return e.len(), e.size(), func(host string) bool { return e.has(s.digest(ofHost, host)) }, nil
}
