package history_test

import (
	"fmt"
	"slices"
	"time"
)

// bounds say how late visitors may be.
type bounds struct {
	late         time.Duration // after somebody was told of a version no server shows an older one
	disconnected []outage      // unless it could not know
}

// outage is a time in which a server could not hear of changes.
type outage struct {
	server   int // -1 = all
	from, to time.Duration
	within   time.Duration // after it the server has heard of what it missed
}

// until returns when a server has to know what was known elsewhere at a time.
func (b *bounds) until(server int, known, late time.Duration) time.Duration {
	end := known + late
	for _, d := range b.disconnected { // in the order in which they began
		if (d.server == server || d.server < 0) && known <= d.to && d.from <= end {
			end = max(end, d.to+d.within)
		}
	}
	return end
}

// chronicle is what is known of one link.
type chronicle struct {
	tries   map[string]*request   // creates and puts, by where they lead
	offs    []*request            // disables that were not refused, by the version they make
	shown   map[uint64]link       // what the API showed at a version
	known   []knowledge           // in the order of time, and so of versions
	blocked time.Duration         // somebody was told that it is
	barring time.Duration         // somebody asked for that
	exists  time.Duration         // somebody was told that it does
	asked   map[int]time.Duration // when its code was first asked for, by server
}

// knowledge is that a version is there.
type knowledge struct {
	version uint64
	at      time.Duration
}

// chronicles sorts a history by links.
func (h *history) chronicles() map[string]*chronicle {
	all := map[string]*chronicle{}
	of := func(key string) *chronicle {
		if all[key] == nil {
			all[key] = &chronicle{
				tries: map[string]*request{}, shown: map[uint64]link{}, asked: map[int]time.Duration{},
				blocked: forever, barring: forever, exists: forever,
			}
		}
		return all[key]
	}
	for i := range h.requests {
		of(h.requests[i].key).request(&h.requests[i])
	}
	for i := range h.visits {
		of(h.visits[i].key).visit(&h.visits[i])
	}
	for _, c := range all {
		slices.SortFunc(c.known, func(a, b knowledge) int { return int(a.at - b.at) })
		most := uint64(0)
		c.known = slices.DeleteFunc(c.known, func(k knowledge) bool { // a version that is there stays
			old := k.version <= most
			most = max(most, k.version)
			return old
		})
	}
	return all
}

func (c *chronicle) request(q *request) {
	switch {
	case q.kind == create || q.kind == put:
		c.tries[q.to] = q
	case q.kind == disable && q.result != refused:
		c.offs = append(c.offs, q)
	case q.kind == block:
		c.barring = min(c.barring, q.call)
		if q.result == done {
			c.blocked = min(c.blocked, q.ret)
		}
	}
	if q.result != done {
		return
	}
	c.exists = min(c.exists, q.ret)
	if l := q.link; l.version > 0 {
		c.shown[l.version] = l
		c.known = append(c.known, knowledge{l.version, q.ret})
		if l.blocked {
			c.blocked = min(c.blocked, q.ret)
		}
	}
}

// visit notes what others may rely on once one visitor saw it.
func (c *chronicle) visit(v *visit) {
	if first, found := c.asked[v.server]; !found || v.call < first {
		c.asked[v.server] = v.call
	}
	switch v.saw {
	case off: // at which version nobody says
	case absent:
		return
	case blocked:
		c.blocked = min(c.blocked, v.ret)
	case led:
		if q := c.tries[v.to]; q != nil && q.result != refused {
			c.known = append(c.known, knowledge{q.makes(), v.ret})
		}
	}
	c.exists = min(c.exists, v.ret)
}

// makes returns the version that a create, put or disable makes.
func (q *request) makes() uint64 { return q.match + 1 }

// needs returns the least version that a visit may show.
func (c *chronicle) needs(b *bounds, v *visit) (version uint64) {
	for _, k := range c.known {
		if k.at < v.call && b.until(v.server, k.at, b.late) < v.call {
			version = k.version
		}
	}
	return version
}

// wrong returns what is wrong with a visit; "" = nothing.
func (c *chronicle) wrong(b *bounds, v *visit) string {
	if v.saw == absent {
		return c.wronglyAbsent(b, v)
	}
	if v.saw == blocked {
		if c.barring > v.ret {
			return "is blocked, and nobody asked for that"
		}
		return ""
	}
	if c.blocked != forever && b.until(v.server, c.blocked, b.late) < v.call {
		return fmt.Sprintf("is %s, and was known to be blocked %s before", v.saw, v.call-c.blocked)
	}
	version, why := c.version(v)
	if why != "" {
		return why
	}
	if needs := c.needs(b, v); version < needs {
		return fmt.Sprintf("is %s at version %d, and version %d was known %s before", v.saw, version, needs, v.call-c.since(version))
	}
	return ""
}

// wronglyAbsent: a link that somebody was told of is there for everybody at once, but where
// its code was asked for before, and its absence kept.
func (c *chronicle) wronglyAbsent(b *bounds, v *visit) string {
	late := time.Duration(0)
	if c.asked[v.server] < c.exists {
		late = b.late
	}
	if c.exists == forever || late == 0 && v.call <= c.exists || late > 0 && v.call <= b.until(v.server, c.exists, late) {
		return ""
	}
	return fmt.Sprintf("is absent, and was known to be there %s before", v.call-c.exists)
}

// version returns the newest version that a visit may have shown, or why it can have shown
// none.
func (c *chronicle) version(v *visit) (version uint64, wrong string) {
	if v.saw == off {
		for _, q := range c.offs {
			if l, found := c.shown[q.makes()]; q.call <= v.ret && (!found || l.off) {
				version = max(version, q.makes())
			}
		}
		// A link that was switched off and changed otherwise since is off at that version, too.
		for number, l := range c.shown {
			if l.off {
				version = max(version, number)
			}
		}
		if version == 0 {
			return 0, "is off, and nobody switched it off"
		}
		return version, ""
	}
	q := c.tries[v.to]
	switch {
	case q == nil || q.call > v.ret:
		return 0, fmt.Sprintf("leads to %q, which nobody asked for", v.to)
	case q.result == refused:
		return 0, fmt.Sprintf("leads to %q, which was refused", v.to)
	}
	if l, found := c.shown[q.makes()]; found && l.to != v.to {
		return 0, fmt.Sprintf("leads to %q, and version %d leads to %q", v.to, q.makes(), l.to)
	}
	return q.makes(), ""
}

// since returns when it was first known that a version is not the newest.
func (c *chronicle) since(version uint64) time.Duration {
	for _, k := range c.known {
		if k.version > version {
			return k.at
		}
	}
	return forever
}

// wrongs returns what is wrong with all visits, and by how much they were late.
func (h *history) wrongs(b *bounds) (wrong []string, late []time.Duration) {
	all := h.chronicles()
	for i := range h.visits {
		v := &h.visits[i]
		c := all[v.key]
		if text := c.wrong(b, v); text != "" {
			wrong = append(wrong, fmt.Sprintf("at %s server %d: %s %s", v.call.Round(time.Millisecond), v.server, v.key, text))
		}
		if v.saw == led {
			if q := c.tries[v.to]; q != nil {
				if from := min(c.since(q.makes()), c.blocked); from < v.call {
					late = append(late, v.call-from)
				}
			}
		}
	}
	slices.Sort(late)
	return wrong, late
}
