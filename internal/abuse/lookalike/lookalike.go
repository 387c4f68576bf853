// Package lookalike finds hosts that imitate brands. Read lookalike.go, which follows a host
// from its labels to a finding; match.go compares one part of a label, brands.go has the
// names that it is compared with.
package lookalike

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"curt/internal/abuse"
	"curt/internal/abuse/listfile"
	"curt/internal/abuse/skeleton"
)

// Signal is abuse.LookAlike: a host that reads like a brand and is not at home
// there. These are imitations, of whatever name in brands.txt or the operator's file:
//
//   - a label, or a part of one between hyphens, that looks like the name and is another
//     (see Skeleton): rnicrosoft, paypa1, раураl, micro-soft;
//   - for names of six letters and more also with one letter wrong, missing, too many or
//     exchanged with its neighbour: not the first one, and no word that the list names;
//   - the name together with a word that lures (lures.txt), in one label or joined:
//     paypal-login, securepaypal24, appleid;
//   - the name as a whole label, or a domain of the brand as several:
//     paypal.evil.example, paypal.com.evil.example.
//
// A part with digits in it (paypal-x7k2) is as good as a word that lures a little.
//
// Names that are also words (marked "~" in the list) need a strong lure beside them, or
// elsewhere in the host where they are a whole label, so that apple-pie.example,
// target.example and apple.fandom.com stay what they are. A name inside of a longer word
// is none: pineapple, metabolic.
//
// The brands are exchanged in one step when an operator's file changes (signals.OpenFiles).
type Signal struct {
	path string
	now  atomic.Pointer[matcher]
}

// matcher is what a host is looked at with. It is never changed once it is made.
type matcher struct {
	brands  *brands
	lures   *lures
	scripts *scripts
	shapes  *skeleton.Shapes
}

// New knows the brands that are listed with this package and those of the file
// at path, in the format that brands.txt explains; "" = no file. A line about a known name
// replaces it, and "-name" takes it out. The error is an ErrDataFile.
func New(path string) (*Signal, error) {
	b, _, _, err := readBrands(path)
	if err != nil {
		return nil, fmt.Errorf("read the brands: %w", err)
	}
	words, err := readLures()
	if err != nil {
		return nil, err
	}
	l := &Signal{path: path}
	l.now.Store(&matcher{brands: b, lures: words, scripts: newScripts(), shapes: new(skeleton.Shapes)})
	return l, nil
}

// Source is the operator's file, with no path where there is none.
func (l *Signal) Source() *listfile.File {
	return &listfile.File{What: "list of brands", Path: l.path, Load: func(int) (listfile.Content, func(), listfile.Stamp, error) {
		b, n, of, err := readBrands(l.path)
		return listfile.Content{Entries: n}, func() {
			before := l.now.Load()
			l.now.Store(&matcher{b, before.lures, before.scripts, before.shapes})
		}, of, err
	}}
}

// Len returns how many brands are known.
func (l *Signal) Len() int { return len(l.now.Load().brands.all) }

// Name implements abuse.Signal.
func (*Signal) Name() abuse.Name { return abuse.LookAlike }

// Inspect implements abuse.Signal.
func (l *Signal) Inspect(_ context.Context, _ time.Time, f *abuse.Facts) ([]abuse.Finding, error) {
	with := l.now.Load()
	host := strings.TrimSuffix(f.URL.Host(), ".")
	if strings.IndexByte(host, '.') < 0 || abuse.IsAddress(host) {
		return nil, nil
	}
	// What the public suffix is, is asked only where a brand is seen: it costs an
	// allocation, and nearly no host has one. Letters outside ASCII take longer, and are
	// looked at once.
	shown := abuse.UnicodeLabels(host)
	if shown == host {
		if v := with.view(shown[:strings.LastIndexByte(shown, '.')]); v.imitated == none && v.suspect == none {
			return nil, nil
		}
	}
	domain := abuse.Registrable(host)
	if domain == "" || with.brands.atHome(host, domain) {
		return nil, nil
	}
	v := with.view(labels(shown, 1+strings.Count(host[:len(host)-len(domain)], ".")))
	if v.imitated == none && v.strong {
		v.imitated, v.text = v.suspect, v.suspectText
	}
	if v.imitated == none {
		return nil, nil
	}
	b := &with.brands.all[v.imitated]
	evidence := fmt.Sprintf("%s in %s reads like %s of %s", v.text, host, b.name, b.home)
	if v.mixed != "" {
		evidence += ", and mixes " + v.mixed
	}
	return abuse.Found(abuse.LookAlike, evidence), nil
}

// labels returns the first n labels of a host.
func labels(host string, n int) string {
	end := 0
	for ; n > 0; n-- {
		next := strings.IndexByte(host[end:], '.')
		if next < 0 {
			return host
		}
		end += next + 1
	}
	return host[:end-1]
}

// none is no brand.
const none = -1

// view is what is seen of one host, label by label.
type view struct {
	with *matcher

	imitated int    // the brand that is imitated for sure
	text     string // the label that does it
	mixed    string // the scripts that the label mixes
	strong   bool   // a strong lure stands somewhere

	suspect     int // a brand that is imitated if there is a strong lure anywhere
	suspectText string
}

// view looks at the labels of a host that may say a brand's name.
func (w *matcher) view(host string) view {
	v := view{with: w, suspect: none}
	v.imitated, v.text = w.brands.spelled(host)
	for rest, more := host, true; more && v.imitated == none; {
		var label string
		label, rest, more = strings.Cut(rest, ".")
		v.label(label)
	}
	return v
}

// label looks at one label: at its parts between hyphens, and at all of it without them.
func (v *view) label(label string) {
	if label == "www" || len(label) < 2 {
		return // says nothing where it belongs; no name and no word has one letter
	}
	mixed := ""
	if !ascii(label) {
		mixed = v.with.scripts.mixture(label)
	}
	var rawRoom, joinedRoom, shapesRoom [4 * mostLetters]byte
	var sightsRoom [mostLetters / 2]match
	raw, joined, sights := append(rawRoom[:0], label...), reading{joinedRoom[:0], shapesRoom[:0]}, sightsRoom[:0]
	var beside [endLure + 1]bool
	for part, rest := cutPart(raw); len(part) > 0; part, rest = cutPart(rest) {
		before := joined
		joined = joined.with(v.with.shapes, part)
		s := v.with.read(joined.behind(before))
		switch sights = append(sights, s); {
		case s.brand != none:
		case s.lure == noLure && bytes.ContainsAny(part, "0123456789"): // what a program made up
			beside[weakLure] = true
		default:
			beside[s.lure] = true
		}
	}
	strong, weak := beside[strongLure] || beside[endLure], beside[weakLure]
	v.strong = v.strong || strong
	whole := len(joined.text) == len(raw)
	for _, s := range sights {
		v.judge(s, label, whole, strong, weak)
	}
	if !whole {
		if s := v.with.read(joined); !s.near {
			v.judge(s, label, true, strong, weak)
		}
	}
	if mixed != "" {
		v.judge(v.with.inside(joined), label, whole, strong, weak)
	}
	if v.imitated != none {
		v.mixed = mixed
	}
}

// judge takes a sight for an imitation or for a suspect. whole is whether the name is all
// of its label; strong and weak are the lures beside it there.
func (v *view) judge(s match, label string, whole, strong, weak bool) {
	if s.brand == none || v.imitated != none {
		return
	}
	common := v.with.brands.all[s.brand].common
	strong = strong || s.lure == strongLure
	weak = weak || s.lure == weakLure
	switch {
	case s.disguised, s.near, strong, weak && !common, whole && s.lure == noLure && !common:
		v.imitated, v.text = s.brand, label
	case whole || !common:
		v.suspect, v.suspectText = s.brand, label
	}
}

// cutPart returns the first part of a label that is not empty, between hyphens and
// underscores, and what follows it.
func cutPart(label []byte) (part, rest []byte) {
	label = bytes.TrimLeft(label, "-_")
	if i := bytes.IndexAny(label, "-_"); i >= 0 {
		return label[:i], label[i+1:]
	}
	return label, nil
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
