package search

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"curt/internal/link"
)

// The bounds of a question.
const (
	MaxText  = 256 // bytes
	MaxWords = 10  // words that differ
)

// Filter chooses links. Zero fields do not filter. The zero Order is newest first.
type Filter struct {
	Workspace link.WorkspaceID // "" = all workspaces
	Domain    *link.Domain
	Status    link.Status
	State     link.State
	Tag       string   // one of the link's tags, byte by byte
	Words     []string // from ParseWords; all must match
	Order     Order
}

// Order is the order of a list.
type Order uint8

// The orders.
const (
	Newest Order = iota
	Oldest
	MostClicked
)

// ParseWords returns the words of a question. Each matches a link that has the
// word, or one that begins with it, in the hosts of its destination and its fallback, in
// the destination's path, its title, code or tags. The errors are for people.
func ParseWords(text string) ([]string, error) {
	switch {
	case len(text) > MaxText:
		return nil, fmt.Errorf("must not exceed %d bytes", MaxText)
	case !utf8.ValidString(text):
		return nil, errors.New("must be UTF-8")
	}
	var found []string
	words(text, func(w string) bool {
		if !slices.Contains(found, w) {
			found = append(found, w)
		}
		return len(found) <= MaxWords
	})
	switch {
	case len(found) == 0:
		return nil, errors.New("contains no word: expected letters or digits")
	case len(found) > MaxWords:
		return nil, fmt.Errorf("contains more than %d words", MaxWords)
	}
	return found, nil
}

// Kinds of terms: their first byte.
const (
	kindWorkspace = "w"
	kindDomain    = "d"
	kindStatus    = "s"
	kindSafety    = "f"
	kindTag       = "t"
	kindStarts    = "b" // and the day, which sorts as text
	kindExpires   = "e" // and the day
	kindLimited   = "l"
	kindWord      = "x"
)

// NewDocument returns what an index holds of a link; a tombstone has none.
func NewDocument(l *link.Link) Document {
	d := Document{ID: l.ID, Key: l.Key, Terms: []string{
		kindWorkspace + string(l.Workspace), kindDomain + string(l.Key.Domain),
		number(kindStatus, uint8(l.Status)), number(kindSafety, uint8(l.Safety)),
	}}
	if !l.Starts.IsZero() {
		d.Terms = append(d.Terms, day(kindStarts, l.Starts, 0))
	}
	if !l.Expires.IsZero() {
		d.Terms = append(d.Terms, day(kindExpires, l.Expires, 0))
	}
	if l.MaxClicks > 0 {
		d.Terms = append(d.Terms, kindLimited)
	}
	for i, t := range l.Tags {
		if !slices.Contains(l.Tags[:i], t) {
			d.Terms = append(d.Terms, kindTag+t)
		}
	}
	for w := range wordsOf(l) {
		d.Terms = append(d.Terms, kindWord+w)
	}
	return d
}

// wordsOf returns the words by which a link is found. The hosts that it may lead to come
// first, so that nothing an owner writes hides them from who looks for a host; then what
// its owner chose, so that a long URL cannot push it out.
func wordsOf(l *link.Link) map[string]struct{} {
	s := wordSet{seen: make(map[string]struct{}, 16)}
	s.addHost(hostOf(l.Destination))
	s.addHost(hostOf(l.Fallback))
	s.add(string(l.Key.Code))
	var texts []string
	for _, f := range link.Fields() {
		if f.Kind != link.Text {
			continue
		}
		switch x := f.Of(l).(type) {
		case *[]string:
			for _, t := range *x {
				s.add(t)
			}
		case *string:
			texts = append(texts, *x)
		}
	}
	for _, t := range texts {
		s.add(t)
	}
	s.addPath(l.Destination)
	return s.seen
}

func number(kind string, n uint8) string { return kind + string(rune('0'+n)) }

// day is the term of the UTC day of a time, some days later.
func day(kind string, t time.Time, later int) string {
	days := t.Unix() / (24 * 60 * 60)
	return fmt.Sprintf("%s%07d", kind, max(0, days+int64(later)))
}

// Query returns what to ask an index for at a time: every link that matches, and
// some that do not, because an index knows times by the day and no clicks. Whoever
// asks drops those by Matches.
func (f *Filter) Query(now time.Time) Query {
	var q Query
	all := func(ranges ...Range) { q.All = append(q.All, ranges...) }
	if f.Workspace != "" {
		all(Exactly(kindWorkspace + string(f.Workspace)))
	}
	if f.Domain != nil {
		all(Exactly(kindDomain + string(*f.Domain)))
	}
	if f.Status != 0 {
		all(Exactly(number(kindStatus, uint8(f.Status))))
	}
	if f.Tag != "" {
		all(Exactly(kindTag + f.Tag))
	}
	f.state(&q, now)
	for _, w := range f.Words {
		all(Prefixed(kindWord + w))
	}
	return q
}

// state adds what is known of the links of a state.
func (f *Filter) state(q *Query, now time.Time) {
	active := Exactly(number(kindStatus, uint8(link.Active)))
	safety := func(least, most link.Safety) Range {
		return Range{number(kindSafety, uint8(least)), number(kindSafety, uint8(most)+1)}
	}
	switch f.State {
	case link.StateLegal:
		q.All = append(q.All, safety(link.Legal, link.Legal))
	case link.StateBlocked:
		q.All = append(q.All, safety(link.Blocked, link.Blocked))
	case link.StateDisabled:
		q.All = append(q.All, Exactly(number(kindStatus, uint8(link.Disabled))))
	case link.StateNotYet:
		q.All = append(q.All, active, Range{day(kindStarts, now, 0), kindStarts + "~"})
	case link.StateExpired:
		q.All = append(q.All, active, Range{kindExpires, day(kindExpires, now, 1)})
	case link.StateExhausted:
		q.All = append(q.All, active, Exactly(kindLimited))
	case link.StateWarning:
		q.All = append(q.All, active, safety(link.Warn, link.Quarantined))
	case link.StateLive:
		q.All = append(q.All, active, safety(link.Clean, link.Clean))
		q.None = append(q.None, Range{day(kindStarts, now, 1), kindStarts + "~"}, Range{kindExpires, day(kindExpires, now, 0)})
	case link.StateDeleted:
		q.All = append(q.All, Range{"\x00", "\x00"}) // nothing: tombstones are in no list
	}
}

// Matches reports whether the filter chooses a link as it stands at now.
func (f *Filter) Matches(l *link.Link, now time.Time) bool {
	switch {
	case l.Status == link.Deleted,
		f.Workspace != "" && l.Workspace != f.Workspace,
		f.Domain != nil && l.Key.Domain != *f.Domain,
		f.Status != 0 && l.Status != f.Status,
		f.State != 0 && l.Target().At(now) != f.State,
		f.Tag != "" && !slices.Contains(l.Tags, f.Tag):
		return false
	case len(f.Words) == 0:
		return true
	}
	has := wordsOf(l)
	for _, w := range f.Words {
		if !begins(has, w) {
			return false
		}
	}
	return true
}

func begins(words map[string]struct{}, prefix string) bool {
	if _, ok := words[prefix]; ok {
		return true
	}
	for w := range words {
		if strings.HasPrefix(w, prefix) {
			return true
		}
	}
	return false
}
