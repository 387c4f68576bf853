package clicks

import (
	"time"

	"curt/internal/link"
)

// aggregate is what Fold has counted since the last batch, in memory. It is filled
// by one goroutine under Fold's lock, then frozen and written by another.
//
// A link with few clicks keeps them as they are, 32 bytes each: to build its
// counters costs more than its clicks are worth before it is written. A busy one
// is summed up every crowd clicks.
type aggregate struct {
	state    State    // that a batch of it leads to
	from     Position // where it began
	index    map[string]int32
	links    []linkCounts
	texts    interner
	extras   map[extra]uint32
	extraIDs []extra
	bytes    int // estimate of the memory held
	events   uint64
	names    agentNames
}

type linkCounts struct {
	key      string          // as in Event.Key; "" = the orphans
	first    int64           // of any event
	last     int64           // of Clicks
	quarters []quarterCounts // one but at the turn of a quarter
}

type quarterCounts struct {
	ordinal uint32
	counts  Counts
	clicks  []click // not yet in summed
	summed  *Rollup // nil until there was a crowd; without Counts
}

// click is one of Counts.Clicks with its dimensions as numbers.
type click struct {
	visitor  uint64
	referrer uint32 // in texts
	extra    uint32 // in extraIDs; 0 = none
	language uint32
	country  [2]byte
	minute   uint8
	human    bool
	qr       bool
	device   uint8
	browser  uint8
	os       uint8
}

// extra holds the dimensions that few clicks have, as numbers in texts; 0 = none.
type extra struct {
	city, network uint32
	utm           [len(utm{})]uint32
}

// crowd is how many clicks of a link and quarter are kept one by one.
const crowd = 256

func newAggregate(s State) *aggregate {
	return &aggregate{
		state: s, from: s.Position, index: make(map[string]int32),
		texts:    interner{ids: make(map[string]uint32)},
		extras:   make(map[extra]uint32),
		extraIDs: make([]extra, 1),
		names:    agentNames{deviceNames(), browserNames(), osNames()},
	}
}

// quarter returns the counters of a link and quarter.
func (a *aggregate) quarter(key []byte, ordinal uint32) (*linkCounts, *quarterCounts) {
	i, ok := a.index[string(key)]
	if !ok {
		i = int32(len(a.links))
		a.links = append(a.links, linkCounts{key: string(key)})
		a.index[a.links[i].key] = i
		a.bytes += 200 + len(key)
	}
	l := &a.links[i]
	for q := range l.quarters {
		if l.quarters[q].ordinal == ordinal {
			return l, &l.quarters[q]
		}
	}
	l.quarters = append(l.quarters, quarterCounts{ordinal: ordinal})
	a.bytes += 120
	return l, &l.quarters[len(l.quarters)-1]
}

// add counts one event. Only answers with the link's own redirect have dimensions.
func (a *aggregate) add(e *Event, agents *agents) {
	key := e.Key
	if e.Outcome == Orphan {
		key = nil
	}
	when := time.UnixMilli(e.Time)
	l, q := a.quarter(key, BucketAt(Quarter, when).Ordinal)
	a.events++
	if l.first == 0 || e.Time < l.first {
		l.first = max(e.Time, 1)
	}
	switch {
	case e.Preview():
		if e.Outcome == Redirected || e.Outcome == Orphan {
			q.counts.Previews++
		}
	case e.Outcome == FellBack:
		q.counts.Fallbacks++
	case e.Outcome == Refused:
		q.counts.Refused++
	case e.Outcome == Redirected, e.Outcome == Orphan:
		who := agents.parse(e.UserAgent)
		q.counts.Clicks++
		if !who.bot {
			q.counts.Humans++
		}
		l.last = max(l.last, e.Time)
		if e.Outcome == Redirected {
			a.addClick(q, e, who, when)
		}
	}
}

func (a *aggregate) addClick(q *quarterCounts, e *Event, who agent, when time.Time) {
	var host [256]byte
	before := cap(q.clicks)
	q.clicks = append(q.clicks, click{
		visitor:  e.Visitor,
		referrer: a.texts.id(referrerHost(e.Referrer, host[:])),
		extra:    a.extra(e),
		language: primaryLanguage(e.Language),
		country:  e.Country,
		minute:   uint8(when.Unix() / 60 % 15),
		human:    !who.bot,
		qr:       e.Flags&ViaQR != 0,
		device:   who.device, browser: who.browser, os: who.os,
	})
	a.bytes += 32 * (cap(q.clicks) - before)
	if len(q.clicks) < crowd {
		return
	}
	if q.summed == nil {
		q.summed = new(Rollup)
	}
	before = q.summed.size()
	var s summer
	q.summed.Add(s.sum(a, q.clicks))
	for d := range q.summed.Dimensions {
		if len(q.summed.Dimensions[d]) > 2*MaxValues {
			q.summed.Dimensions[d] = LimitValues(q.summed.Dimensions[d], MaxValues)
		}
	}
	a.bytes += q.summed.size() - before
	q.clicks = q.clicks[:0]
}

// extra returns the number of the rare dimensions of e.
func (a *aggregate) extra(e *Event) uint32 {
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
		id = uint32(len(a.extraIDs))
		a.extras[x] = id
		a.extraIDs = append(a.extraIDs, x)
		a.bytes += 150
	}
	return id
}

// size estimates the memory of a roll-up.
func (r *Rollup) size() int {
	n := 8*cap(r.Visitors.tags) + len(r.Visitors.dense)
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
	n.size += 80 + len(s)
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
