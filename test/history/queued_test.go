package history_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// place is a process: a server, and how often it was started before.
type place struct{ server, start int }

// acceptance is a create that was answered 202, or 201 where its client waited.
type acceptance struct {
	at        place
	key, id   string
	to        string // nobody else's
	once      string // the idempotency key; "" = none
	written   bool   // 201, or 200: the store had it
	call, ret time.Duration
}

// glance is what somebody was shown of a link that was accepted: a visitor, a client of the API, or the owner who changed it.
type glance struct {
	at        place // "" start -1: the process ended meanwhile
	key       string
	saw       look
	kept      string        // Cache-Control of an absent link
	after     string        // Retry-After of a change that is refused
	to        string        // where it leads
	version   uint64        // as the API shows it; 0 = pending, or a visitor's
	call, ret time.Duration // since the history began
}

// look is what came of a request about a link.
type look int

const (
	leads     look = iota // a visitor was redirected
	gone                  // a visitor got 404
	pends                 // the API shows the link, pending
	stored                // the API shows the link, written
	unfound               // the API says 404
	changedTo             // the change was made
	tooSoon               // the change is 409 link-pending
	silent                // the change has no answer: it may have been made
)

func (l look) String() string {
	return [...]string{"leads on", "404 for a visitor", "pending", "stored", "404", "changed", "409 link-pending", "a change without an answer"}[l]
}

// row is a link that the store has when nothing is pending any more.
type row struct{ key, id, to string }

// queue is the history of links that wait before they are written.
type queue struct {
	accepted []acceptance
	glances  []glance
	rows     []row
}

// life is what is known of one link.
type life struct {
	acceptance
	stored   time.Duration     // somebody was told that it is in the store
	versions map[string]uint64 // by where it leads; 0 = nobody was told
	since    map[uint64]time.Duration
}

// lives sorts what is known by links, and says which acceptances contradict each other.
func (h *queue) lives() (lives map[string]*life, wrong []string) {
	lives = map[string]*life{}
	first := map[string]string{} // the code by idempotency key
	for _, a := range h.accepted {
		if before := first[a.once]; a.once != "" && before != "" && before != a.key {
			wrong = append(wrong, fmt.Sprintf("%s and %s are of one request", before, a.key))
		}
		first[a.once] = a.key
		l := lives[a.key]
		switch {
		case l == nil:
			l = &life{acceptance: a, stored: forever, versions: map[string]uint64{a.to: 1}, since: map[uint64]time.Duration{}}
			lives[a.key] = l
		case l.id != a.id || l.to != a.to:
			wrong = append(wrong, fmt.Sprintf("the code %s was given to %s and %s", a.key, l.to, a.to))
		}
		if a.written {
			l.stored = min(l.stored, a.ret)
		}
	}
	for _, g := range h.glances {
		l := lives[g.key]
		if l == nil {
			continue
		}
		switch g.saw {
		case stored, changedTo:
			l.stored = min(l.stored, g.ret)
			l.versions[g.to] = g.version
			if at, found := l.since[g.version]; !found || g.ret < at {
				l.since[g.version] = g.ret
			}
		case silent:
			if _, found := l.versions[g.to]; !found {
				l.versions[g.to] = 0
			}
		case leads, gone, pends, unfound, tooSoon: // nothing that others have to know
		}
	}
	return lives, wrong
}

// newest returns the newest version that had been known at a time.
func (l *life) newest(at time.Duration) (version uint64) {
	for v, since := range l.since {
		if since < at {
			version = max(version, v)
		}
	}
	return version
}

// wrong returns what is wrong with what somebody was shown; "" = nothing. What the store has is known at once to the API, and to visitors
// within late.
func (l *life) wrong(g *glance, late time.Duration) string {
	here := g.at == l.at && g.call > l.ret
	known := l.stored < g.call
	switch g.saw {
	case gone:
		switch {
		case g.kept != "no-store":
			return fmt.Sprintf("is absent with Cache-Control %q", g.kept)
		case here:
			return "is absent where it was accepted"
		case l.stored != forever && l.stored+late < g.call:
			return fmt.Sprintf("is absent, and was known to be stored %s before", g.call-l.stored)
		}
	case unfound:
		if here || known {
			return "is unknown to the API"
		}
	case pends:
		if known {
			return "is pending, and was known to be stored"
		}
	case tooSoon:
		if known {
			return "cannot be changed as it is pending, and was known to be stored"
		}
		if g.after == "" {
			return "cannot be changed as it is pending, without Retry-After"
		}
	case leads, stored:
		version, asked := l.versions[g.to]
		if !asked {
			return fmt.Sprintf("leads to %q, which nobody asked for", g.to)
		}
		if needs := l.newest(g.call - late); version > 0 && version < needs {
			return fmt.Sprintf("leads to version %d, and version %d was known %s before", version, needs, g.call-l.since[needs])
		}
	case changedTo, silent: // judged by what others are shown
	}
	return ""
}

// wrongs returns all that is wrong with a history at whose end nothing is pending.
func (h *queue) wrongs(late time.Duration) []string {
	lives, wrong := h.lives()
	for i := range h.glances {
		g := &h.glances[i]
		if l := lives[g.key]; l != nil {
			if text := l.wrong(g, late); text != "" {
				wrong = append(wrong, fmt.Sprintf("at %s server %d: %s %s", g.call.Round(time.Millisecond), g.at.server, g.key, text))
			}
		}
	}
	have := map[string]row{}
	ids := map[string]int{}
	for _, r := range h.rows {
		have[r.key] = r
		if ids[r.id]++; ids[r.id] > 1 {
			wrong = append(wrong, fmt.Sprintf("%s is stored twice", r.id))
		}
	}
	for key, l := range lives {
		r, found := have[key]
		if _, asked := l.versions[r.to]; !found || r.id != l.id || !asked {
			wrong = append(wrong, fmt.Sprintf("%s of %s was accepted as %s; the store has %+v", key, l.to, l.id, r))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// TestQueuedHistoriesAreJudged: what a queue of links may not do is found, and what it may is not.
func TestQueuedHistoriesAreJudged(t *testing.T) {
	t.Parallel()
	here, there, restarted := place{0, 0}, place{1, 0}, place{0, 1}
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	taken := acceptance{at: here, key: "k", id: "1", to: "a", once: "o", call: ms(10), ret: ms(11)}
	is := []row{{"k", "1", "a"}}
	sees := func(from int, at place, saw look, to string, version uint64) glance {
		return glance{at: at, key: "k", saw: saw, kept: "no-store", after: "1", to: to, version: version, call: ms(from), ret: ms(from + 1)}
	}
	loose := sees(30, there, gone, "", 0)
	loose.kept = "max-age=60"
	when := sees(30, here, tooSoon, "", 0)
	when.after = ""
	with := func(a acceptance, change func(*acceptance)) acceptance { change(&a); return a }
	for name, c := range map[string]struct {
		accepted []acceptance
		glances  []glance
		rows     []row
		wrong    string // "" = nothing is
	}{
		"a life": {[]acceptance{taken}, []glance{
			sees(20, here, leads, "a", 0), sees(20, there, gone, "", 0), sees(25, here, pends, "a", 0), sees(26, there, unfound, "", 0), sees(30, here, tooSoon, "", 0),
			sees(40, here, stored, "a", 1), sees(50, there, gone, "", 0), sees(60, here, changedTo, "b", 2), sees(70, there, leads, "a", 0), sees(2000, there, leads, "b", 0),
		}, []row{{"k", "1", "b"}}, ""},
		"asked for before":                  {[]acceptance{taken}, []glance{sees(5, here, gone, "", 0)}, is, ""},
		"a restart":                         {[]acceptance{taken}, []glance{sees(20, restarted, gone, "", 0)}, is, ""},
		"asked twice":                       {[]acceptance{taken, with(taken, func(a *acceptance) { a.at, a.ret = there, ms(30) })}, nil, is, ""},
		"a change without an answer":        {[]acceptance{taken}, []glance{sees(30, here, silent, "b", 0), sees(3000, here, leads, "b", 0)}, is, ""},
		"absent where it was accepted":      {[]acceptance{taken}, []glance{sees(20, here, gone, "", 0)}, is, "where it was accepted"},
		"absent for too long":               {[]acceptance{taken}, []glance{sees(40, here, stored, "a", 1), sees(2000, there, gone, "", 0)}, is, "known to be stored"},
		"absent after a 201":                {[]acceptance{with(taken, func(a *acceptance) { a.written = true })}, []glance{sees(2000, there, gone, "", 0)}, is, "known to be stored"},
		"an absence that is kept":           {[]acceptance{taken}, []glance{loose}, is, "Cache-Control"},
		"unknown to who accepted it":        {[]acceptance{taken}, []glance{sees(20, here, unfound, "", 0)}, is, "unknown to the API"},
		"pending again":                     {[]acceptance{taken}, []glance{sees(40, here, stored, "a", 1), sees(50, here, pends, "a", 0)}, is, "is pending, and"},
		"a change is refused for too long":  {[]acceptance{taken}, []glance{sees(40, here, stored, "a", 1), sees(50, here, tooSoon, "", 0)}, is, "as it is pending, and"},
		"a change is refused without until": {[]acceptance{taken}, []glance{when}, is, "without Retry-After"},
		"a change is lost":                  {[]acceptance{taken}, []glance{sees(60, here, changedTo, "b", 2), sees(2000, here, leads, "a", 0)}, is, "version 2 was known"},
		"it leads elsewhere":                {[]acceptance{taken}, []glance{sees(60, here, leads, "x", 0)}, is, "nobody asked for"},
		"a 202 is lost":                     {[]acceptance{taken}, nil, nil, "was accepted"},
		"another has its code":              {[]acceptance{taken}, nil, []row{{"k", "2", "x"}}, "was accepted"},
		"it is stored twice":                {[]acceptance{taken}, nil, []row{{"k", "1", "a"}, {"m", "1", "a"}}, "stored twice"},
		"a code for two":                    {[]acceptance{taken, with(taken, func(a *acceptance) { a.id, a.to, a.once = "2", "b", "" })}, nil, is, "was given to"},
		"two links of one request":          {[]acceptance{taken, with(taken, func(a *acceptance) { a.key, a.id = "m", "2" })}, nil, append(is, row{"m", "2", "a"}), "of one request"},
	} {
		t.Run(name, func(t *testing.T) {
			h := queue{c.accepted, c.glances, c.rows}
			if got := strings.Join(h.wrongs(time.Second), "\n"); (got == "") != (c.wrong == "") || !strings.Contains(got, c.wrong) {
				t.Errorf("%q is wrong, want %q", got, c.wrong)
			}
		})
	}
}
