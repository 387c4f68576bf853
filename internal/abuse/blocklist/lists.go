// Package blocklist has the lists of an operator in memory: of destinations that do harm or
// that are fine ([Lists]), and of aliases that are reserved or refused ([Words]).
//
// Read lists.go first: it loads files and matches a URL. format.go says what a line means,
// listversion.go how a file becomes a set of entries, expression.go and match.go which URLs
// an entry means, digests.go what it takes in memory.
package blocklist

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"curt/internal/abuse"
	"curt/internal/abuse/listfile"
	"curt/internal/background"
	"curt/internal/weburl"
)

// Config says which files are read.
type Config struct {
	Paths []string     // of blocklists
	Allow []string     // of allow-lists; together at most MaxLists
	Log   *slog.Logger // nil = none
	// Yielder boosts the reading of a file: millions of lines take seconds of one processor. Nil =
	// nothing is scheduled.
	Yielder background.Yielder
}

// Lists are the files of an operator that say which destinations do harm, and which
// do none whatever others say. They are a Signal. They are safe for many goroutines.
type Lists struct{ set }

// set are the lists of one purpose, in files that are read again when they change (package listfile).
type set struct {
	files *listfile.Set
	all   []*list // set once
	seeds *seeds
}

// list is one file.
type list struct {
	name string // of the file, without folder and extension
	role role
	now  atomic.Pointer[listVersion] // nil = no version could be used yet
}

// role says what the entries of a list are for.
type role uint8

const (
	forbids role = iota
	allows
	reserves
	refuses
)

// String names such a list for people.
func (r role) String() string {
	return [...]string{"blocklist", "allow-list", "list of reserved words", "list of refused words"}[r]
}

// group is the files of one role.
type group struct {
	role  role
	parse syntax
	paths []string
}

func newLists(log *slog.Logger, yielder background.Yielder, groups ...group) set {
	s := set{seeds: newSeeds()}
	var files []*listfile.File
	for _, g := range groups {
		for _, path := range g.paths {
			name := filepath.Base(path)
			l := &list{name: strings.TrimSuffix(name, filepath.Ext(name)), role: g.role}
			s.all = append(s.all, l)
			files = append(files, &listfile.File{What: g.role.String(), Path: path, Load: func(room int) (listfile.Content, func(), listfile.Stamp, error) {
				e, of, err := read(path, g.parse, s.seeds, room)
				if err != nil {
					return listfile.Content{}, nil, of, err
				}
				return listfile.Content{Entries: e.len(), Bytes: e.size(), Passed: e.contents.passed, Invalid: e.contents.strange}, func() { l.now.Store(e) }, of, nil
			}})
		}
	}
	s.files = listfile.NewSet(log, yielder, files...)
	return s
}

// Run takes new versions of the files, until ctx ends; then it returns nil.
func (s *set) Run(ctx context.Context) error { return s.files.Run(ctx) }

// Reload reads every file now, whether it has changed or not, and returns what is wrong
// with them, joined.
func (s *set) Reload(ctx context.Context) error { return s.files.Reload(ctx) }

// OnChange has changed called, which must not block, each time that another version of a
// file is in use.
func (s *set) OnChange(changed func()) { s.files.OnChange(changed) }

// Open reads the files. A path that is no file is ErrFile in a FileError, and more than
// MaxLists are refused; a file that is damaged or too large is logged, and says nothing until a
// good version takes its place. Also with an error, Files says what is wrong with each.
func Open(ctx context.Context, cfg Config) (*Lists, error) {
	b := &Lists{newLists(cfg.Log, cfg.Yielder, group{forbids, destinations(false), cfg.Paths}, group{allows, destinations(true), cfg.Allow})}
	return b, b.files.Open(ctx)
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
func (b *Lists) Match(u weburl.URL) (Rule, bool) {
	var q question
	q.about(u)
	if _, ok := b.first(&q, allows); ok {
		return Rule{}, false
	}
	return b.first(&q, forbids)
}

// first returns what the first list of a role says.
func (b *Lists) first(q *question, as role) (Rule, bool) {
	for _, l := range b.all {
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
func (b *Lists) Name() abuse.Name { return abuse.Listed }

// Inspect returns what the first blocklist and the first allow-list say that mean the URL.
func (b *Lists) Inspect(_ context.Context, _ time.Time, f *abuse.Facts) ([]abuse.Finding, error) {
	var q question
	q.about(f.URL)
	var found []abuse.Finding
	if rule, ok := b.first(&q, forbids); ok {
		found = append(found, abuse.Finding{Signal: abuse.Listed, Evidence: rule.evidence()})
	}
	if rule, ok := b.first(&q, allows); ok {
		found = append(found, abuse.Finding{Signal: abuse.Allowed, Evidence: rule.evidence()})
	}
	return found, nil
}

// evidence is "list: entry"; a file may have any name.
func (r Rule) evidence() string { return abuse.Clean(r.List + ": " + r.Entry) }

// Stats returns the counters of the blocklists.
func (b *Lists) Stats() listfile.Stats { return b.files.StatsOf(forbids.String()) }

// AllowStats returns the counters of the allow-lists.
func (b *Lists) AllowStats() listfile.Stats { return b.files.StatsOf(allows.String()) }

// Files returns the blocklists one by one.
func (b *Lists) Files() []listfile.FileStats { return b.files.FilesOf(forbids.String()) }

// AllowFiles returns the allow-lists one by one.
func (b *Lists) AllowFiles() []listfile.FileStats { return b.files.FilesOf(allows.String()) }
