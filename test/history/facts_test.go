package history_test

import (
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// facts are what was shown of one link, by which most requests with an open outcome are
// settled. A primary that is away leaves dozens of them open at once, and the search for an order
// tries every order of those.
type facts struct {
	at    map[uint64]link          // what the link was at a version
	since map[uint64]time.Duration // when somebody had been told of a version
	to    map[string]bool          // where it was seen to lead, at whatever version
	off   map[uint64]bool          // the versions that a disable made that was answered
	first map[asked]time.Duration  // when the first of those was asked that nobody can tell apart
}

// facts sorts what was shown by links.
func (h *history) facts() map[string]*facts {
	all := map[string]*facts{}
	for i := range h.requests {
		q := &h.requests[i]
		f := all[q.key]
		if f == nil {
			f = &facts{map[uint64]link{}, map[uint64]time.Duration{}, map[string]bool{}, map[uint64]bool{}, map[asked]time.Duration{}}
			all[q.key] = f
		}
		if version := q.link.version; q.result == done && version > 0 {
			f.at[version], f.to[q.link.to] = q.link, true
			if t, found := f.since[version]; !found || q.ret < t {
				f.since[version] = q.ret
			}
			if q.kind == disable {
				f.off[version] = true
			}
		}
	}
	for i := range h.requests {
		q := &h.requests[i]
		f := all[q.key]
		if alike := f.alike(q); q.result == unknown {
			if t, found := f.first[alike]; !found || q.call < t {
				f.first[alike] = q.call
			}
		}
	}
	return all
}

// alike is a request without what nobody was shown: two that have it in common can stand for
// each other.
func (f *facts) alike(q *request) asked {
	a := q.asked
	if !f.to[a.to] {
		a.to = ""
	}
	return a
}

// open reports until when a request with an open outcome happened, if it did, and whether
// it matters: not if it surely came to nothing, or if another that nobody can tell from it
// was asked sooner.
func (f *facts) open(q *request) (last time.Duration, matters bool) {
	if q.kind == get {
		return 0, false
	}
	if q.call > f.first[f.alike(q)] {
		return 0, false
	}
	if q.kind == block {
		return forever, true
	}
	version := q.makes()
	l, found := f.at[version]
	switch {
	case !found:
		return forever, true
	case q.kind == disable:
		return forever, l.off && !f.off[version]
	default:
		return f.since[version], l.to == q.to
	}
}

// TestOpenRequestsAreSettled: who was away for long leaves so many outcomes open that no
// search through all their orders would end, and they are judged at once.
func TestOpenRequestsAreSettled(t *testing.T) {
	const many = 60
	var open []request
	for i := range many {
		to := string(rune('A' + i))
		open = append(open,
			at(10+i, asked{kind: create, key: "k", to: to}, told{result: unknown}),
			at(100+i, asked{kind: put, key: "k", match: 1, to: "x" + to}, told{result: unknown}),
			at(200+i, asked{kind: disable, key: "k", match: 2}, told{result: unknown}),
			at(300+i, asked{kind: block, key: "k"}, told{result: unknown}))
	}
	get := func(ms int, l link) request { return at(ms, asked{kind: get, key: "k"}, told{done, l}) }
	for name, c := range map[string]struct {
		shown   []request
		verdict porcupine.CheckResult
	}{
		"none of it is shown":          {nil, porcupine.Ok},
		"the last of each":             {[]request{get(500, link{1, "t", false, false}), get(510, link{2, "xt", false, false}), get(520, link{3, "xt", true, false}), get(530, link{4, "xt", true, true})}, porcupine.Ok},
		"only the end":                 {[]request{get(530, link{4, "xB", true, true})}, porcupine.Ok},
		"two creates":                  {[]request{get(500, link{1, "B", false, false}), get(530, link{1, "C", false, false})}, porcupine.Illegal},
		"it is switched on by nobody":  {[]request{get(520, link{3, "xB", true, false}), get(530, link{3, "xB", false, false})}, porcupine.Illegal},
		"a version is shown that left": {[]request{get(510, link{2, "xB", false, false}), get(530, link{1, "B", false, false})}, porcupine.Illegal},
		"a version that nobody made":   {[]request{get(530, link{5, "xB", true, true})}, porcupine.Illegal},
	} {
		t.Run(name, func(t *testing.T) {
			h := history{requests: slices.Concat(open, c.shown)}
			if got, _ := h.linearizable(); got != c.verdict {
				t.Errorf("%s, want %s", got, c.verdict)
			}
		})
	}
}
