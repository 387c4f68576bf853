package abuse

import (
	"context"
	"log/slog"
	"time"

	"curt/internal/weburl"
)

// Config says which files are read.
type Config struct {
	Paths []string     // of blocklists
	Allow []string     // of allow-lists; together at most MaxLists
	Log   *slog.Logger // nil = none
	// Work is called before a file is read, and what it returns afterwards: reading millions of
	// lines takes seconds of one processor. Nil = nobody wants to know.
	Work func() (done func())
}

// Blocklists are the files of an operator that say which destinations do harm, and which
// do none whatever others say. They are a Signal. They are safe for many goroutines.
//
// A file whose new version cannot be used, because it is missing, damaged, half-written,
// too large or without an entry where there were some, is logged once and leaves the
// version in use as it was; a new version takes the place of the old one in one step,
// and keeps nobody waiting meanwhile.
type Blocklists struct{ *files }

// Open reads the files. A path that is no file is ErrFile in a FileError, and more than
// MaxLists are refused; a file that is damaged or too large is logged, and says nothing until a
// good version takes its place.
func Open(ctx context.Context, cfg Config) (*Blocklists, error) {
	f := listsOf(cfg)
	if err := f.open(ctx); err != nil {
		return nil, err
	}
	return &Blocklists{f}, nil
}

func listsOf(cfg Config) *files {
	f := newFiles(cfg.Log, cfg.Work)
	f.add("blocklist", forbids, destinations(false), cfg.Paths)
	f.add("allow-list", allows, destinations(true), cfg.Allow)
	return f
}

// Rule is what a list says of a destination: enough for its maker to see why, and for the
// operator to find the line.
type Rule struct {
	List string // the name of the file, without folder and extension
	// Entry is as the list means it: the destination's host or a domain above it, the
	// beginning of its URL, or "SHA-256 of " and what was hashed.
	Entry string
}

// Match returns the rule that forbids links to u, of the first list that has one. An
// allow-list that means u overrules them all.
func (b *Blocklists) Match(u weburl.URL) (Rule, bool) {
	var q question
	q.about(u)
	if _, ok := b.first(&q, allows); ok {
		return Rule{}, false
	}
	return b.first(&q, forbids)
}

// first returns what the first list of a role says.
func (b *Blocklists) first(q *question, as role) (Rule, bool) {
	for _, l := range b.lists {
		if l.role != as {
			continue
		}
		if found, ok := q.in(l.now.Load(), b.seeds); ok {
			return Rule{List: l.name, Entry: found}, true
		}
	}
	return Rule{}, false
}

// Name is Listed; a finding of an allow-list is Allowed.
func (b *Blocklists) Name() Name { return Listed }

// Look returns what the first blocklist and the first allow-list say that mean the URL.
func (b *Blocklists) Look(_ context.Context, _ time.Time, f *Facts) ([]Finding, error) {
	var q question
	q.about(f.URL)
	var found []Finding
	if rule, ok := b.first(&q, forbids); ok {
		found = append(found, Finding{Signal: Listed, Evidence: rule.evidence()})
	}
	if rule, ok := b.first(&q, allows); ok {
		found = append(found, Finding{Signal: Allowed, Evidence: rule.evidence()})
	}
	return found, nil
}

// evidence is "list: entry"; a file may have any name.
func (r Rule) evidence() string { return clean(r.List + ": " + r.Entry) }

// Stats returns the counters of the blocklists.
func (b *Blocklists) Stats() Stats { return b.stats(forbids) }

// AllowStats returns the counters of the allow-lists.
func (b *Blocklists) AllowStats() Stats { return b.stats(allows) }

// Probe reads the files once and returns what is in them. The error is a FileError about
// the first that cannot be used.
func Probe(ctx context.Context, cfg Config) (Stats, error) { return listsOf(cfg).probe(ctx) }
