package clicks

import (
	"time"

	"curt/internal/link"
)

// aggregate is what Fold has counted since the last batch, in memory. It is filled
// by one goroutine under Fold's lock, then frozen and written by another.
//
// A link with few clicks keeps them as they are, 24 bytes each: to build its
// counters costs more than its clicks are worth before it is written. A busy one
// is summed up every crowd clicks. The smaller a link is here, the more clicks
// share the writing of its rows.
type aggregate struct {
	state    State     // that a batch of it leads to
	from     Position  // where it began
	complete time.Time // every kept click before it is in this batch or earlier ones; set when frozen
	index    map[string]int32
	links    [][]linkCounts // in pieces, so that growing copies nothing
	texts    interner
	extras   map[extra]uint16
	extraIDs []extra
	bytes    int // estimate of the memory held
	names    agentNames
	summer   summer // of crowds
}

// linkCounts is what happened to a link in one quarter. At the turn of a quarter a
// link has a second one, which next leads to.
type linkCounts struct {
	key         string // as in Event.Key; "" = the orphans
	first, last int64  // of any event, of Counts.Clicks; kept in the link's first entry
	clicks      []click
	summed      *Rollup // clicks that were a crowd, without Counts; nil until then
	ordinal     uint32
	next        int32 // 0 = none: the entry 0 is nobody's second
	chained     bool  // some other entry's next leads here
	counts      smallCounts
}

// smallCounts are Counts of one batch, which no quarter brings to 2^32.
type smallCounts struct{ clicks, humans, previews, fallbacks, refused uint32 }

func (c smallCounts) counts() Counts {
	return Counts{
		Clicks: uint64(c.clicks), Humans: uint64(c.humans), Previews: uint64(c.previews),
		Fallbacks: uint64(c.fallbacks), Refused: uint64(c.refused),
	}
}

// click is one of Counts.Clicks with its dimensions as numbers.
type click struct {
	visitor  uint64
	referrer uint32 // in texts
	extra    uint16 // in extraIDs; 0 = none
	language uint16 // packed
	country  [2]byte
	minute   uint8
	flags    clickFlags
	device   uint8
	browser  uint8
	os       uint8
}

type clickFlags uint8

const (
	byHuman   clickFlags = 1 << 0
	byQR      clickFlags = 1 << 1 // of these two at most one
	byWarning clickFlags = 1 << 2
)

// extra holds the dimensions that few clicks have, as numbers in texts; 0 = none.
type extra struct {
	city, network uint32
	utm           [len(utm{})]uint32
}

const (
	crowd     = 128 // clicks of a link and quarter that are kept one by one
	piece     = 512 // entries of a piece of links
	maxExtras = 1<<16 - 1

	// What things weigh, for the bound of memory.
	clickBytes = 24
	linkBytes  = 112 + 40 // the entry and its place in the index
	extraBytes = 28 + 28 + 20
)

func newAggregate(s State) *aggregate {
	return &aggregate{
		state: s, from: s.Position, index: make(map[string]int32),
		texts:    interner{ids: make(map[string]uint32)},
		extras:   make(map[extra]uint16),
		extraIDs: make([]extra, 1),
		names:    agentNames{deviceNames(), browserNames(), osNames()},
	}
}

// at returns an entry of links.
func (a *aggregate) at(i int32) *linkCounts { return &a.links[i/piece][i%piece] }

// enter appends an entry to links.
func (a *aggregate) enter(l linkCounts) int32 {
	last := len(a.links) - 1
	if last < 0 || len(a.links[last]) == piece {
		a.links = append(a.links, make([]linkCounts, 0, piece))
		last++
	}
	a.links[last] = append(a.links[last], l)
	a.bytes += linkBytes
	return int32(last*piece + len(a.links[last]) - 1)
}

// quarter returns the first entry of a link, and the one of a quarter.
func (a *aggregate) quarter(key []byte, ordinal uint32) (first, quarter *linkCounts) {
	i, ok := a.index[string(key)]
	if !ok {
		name := string(key)
		i = a.enter(linkCounts{key: name, ordinal: ordinal})
		a.index[name] = i
		a.bytes += len(name)
	}
	first = a.at(i)
	for quarter = first; quarter.ordinal != ordinal; quarter = a.at(quarter.next) {
		if quarter.next == 0 {
			quarter.next = a.enter(linkCounts{key: first.key, ordinal: ordinal, chained: true})
		}
	}
	return first, quarter
}

// add counts one event, for its link and for a group, unless that is nil. Only answers
// with the link's own redirect have dimensions.
func (a *aggregate) add(e *Event, agents *agents, group []byte) {
	key := e.Key
	if e.Outcome == Orphan {
		key = nil
	}
	var who Agent
	var c click
	if !e.Preview() && (e.Outcome == Redirected || e.Outcome == Orphan) {
		if who = agents.of(e); e.Outcome == Redirected {
			c = a.click(e, who)
		}
	}
	a.count(key, e, who, &c)
	if group != nil {
		a.count(group, e, who, &c)
	}
}

// count adds an event to what is counted under a key.
func (a *aggregate) count(key []byte, e *Event, who Agent, c *click) {
	l, q := a.quarter(key, BucketAt(Quarter, time.UnixMilli(e.Time)).Ordinal)
	if l.first == 0 || e.Time < l.first {
		l.first = max(e.Time, 1)
	}
	switch {
	case e.Preview():
		if e.Outcome == Redirected || e.Outcome == Orphan {
			q.counts.previews++
		}
	case e.Outcome == FellBack:
		q.counts.fallbacks++
	case e.Outcome == Refused:
		q.counts.refused++
	case e.Outcome == Redirected, e.Outcome == Orphan:
		q.counts.clicks++
		if !who.Bot() {
			q.counts.humans++
		}
		l.last = max(l.last, e.Time)
		if e.Outcome == Redirected {
			a.addClick(q, *c)
		}
	}
}

// click makes numbers of the dimensions of an event.
func (a *aggregate) click(e *Event, who Agent) click {
	var host [256]byte
	c := click{
		visitor:  e.Visitor,
		referrer: a.texts.id(referrerHost(e.Referrer, host[:])),
		extra:    a.extra(e),
		language: primaryLanguage(e.Language),
		country:  e.Country,
		minute:   uint8(max(e.Time, 0) / 60_000 % minutesPerQuarter),
		device:   who.device, browser: who.browser, os: who.os,
	}
	if !who.Bot() {
		c.flags |= byHuman
	}
	switch {
	case e.Flags&Warned != 0:
		c.flags |= byWarning
	case e.Flags&ViaQR != 0:
		c.flags |= byQR
	}
	return c
}

func (a *aggregate) addClick(q *linkCounts, c click) {
	before := cap(q.clicks)
	q.clicks = append(q.clicks, c)
	a.bytes += clickBytes * (cap(q.clicks) - before)
	if len(q.clicks) >= crowd {
		a.sumUp(q)
	}
}

// sumUp turns the clicks of an entry into counters.
func (a *aggregate) sumUp(q *linkCounts) {
	if q.summed == nil {
		q.summed = new(Rollup)
	}
	before := q.summed.size()
	a.summer.reset()
	q.summed.Add(a.summer.sum(a, q.clicks)) // which keeps nothing of it
	for d := range q.summed.Dimensions {
		if len(q.summed.Dimensions[d]) > 2*MaxValues {
			q.summed.Dimensions[d] = LimitValues(q.summed.Dimensions[d], MaxValues)
		}
	}
	a.bytes += q.summed.size() - before
	q.clicks = q.clicks[:0]
}

// extra returns the number of the rare dimensions of e.
func (a *aggregate) extra(e *Event) uint16 {
	fields, tagged := readUTM(e.Query)
	if !tagged && len(e.City) == 0 && len(e.Network) == 0 {
		return 0
	}
	x := extra{city: a.texts.id(e.City), network: a.texts.id(e.Network)}
	for i, f := range fields {
		x.utm[i] = a.texts.id([]byte(f))
	}
	id, ok := a.extras[x]
	if !ok {
		if len(a.extraIDs) > maxExtras {
			return 0 // strangers invent campaigns; a batch knows 65,535 of them
		}
		id = uint16(len(a.extraIDs))
		a.extras[x] = id
		a.extraIDs = append(a.extraIDs, x)
		a.bytes += extraBytes
	}
	return id
}

// size estimates the memory of a roll-up.
func (r *Rollup) size() int {
	n := 8*cap(r.Visitors.tags) + len(r.Visitors.dense) + 24*cap(r.Minutes)
	for d := range r.Dimensions {
		n += 32 * cap(r.Dimensions[d])
	}
	return n
}

// interner gives texts numbers; 0 is the empty text. Strangers choose texts, so
// beyond maxTexts all new ones are Other.
type interner struct {
	ids   map[string]uint32
	texts []string // by number - 1
	size  int
}

const maxTexts = 1 << 16

func (n *interner) id(text []byte) uint32 {
	if len(text) == 0 {
		return 0
	}
	if id, ok := n.ids[string(text)]; ok {
		return id
	}
	s := string(text)
	if len(n.texts) >= maxTexts {
		s = Other
		if id, ok := n.ids[s]; ok {
			return id
		}
	}
	n.texts = append(n.texts, s)
	n.ids[s] = uint32(len(n.texts))
	n.size += 60 + len(s)
	return uint32(len(n.texts))
}

func (n *interner) text(id uint32) string {
	if id == 0 {
		return ""
	}
	return n.texts[id-1]
}

// weight estimates the memory that the aggregate holds, in bytes.
func (a *aggregate) weight() int { return a.bytes + a.texts.size }

// linkKey returns the key of a link by the log's spelling.
func linkKey(key string) link.Key {
	domain, code := DecodeKey([]byte(key))
	return link.Key{Domain: link.Domain(domain), Code: link.Code(code)}
}
