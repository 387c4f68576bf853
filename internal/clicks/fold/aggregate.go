package fold

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/headers"
	"curt/internal/clicks/rollup"
	"curt/internal/clicks/useragent"
)

// aggregate is what Fold has counted since the last batch, in memory. It is filled
// by one goroutine under Fold's lock, then frozen and written by another.
//
// A link with few clicks keeps them as they are, 24 bytes each: to build its
// counters costs more than its clicks are worth before it is written. A busy one
// is summed up every flushThreshold clicks. The smaller a link is here, the more clicks
// share the writing of its rows.
type aggregate struct {
	state    rollup.State      // that a batch of it leads to
	from     clicklog.Position // where it began
	complete time.Time         // every kept click before it is in this batch or earlier ones; set when frozen
	index    map[string]int32
	links    [][]linkCounts // in pieces, so that growing copies nothing
	texts    interner
	extras   map[extra]uint16
	extraIDs []extra
	bytes    int // estimate of the memory held
	names    useragent.Names
	summer   summer // of sumUp
}

// linkCounts is what happened to a link in one quarter. At the turn of a quarter a
// link has a second one, which next leads to.
type linkCounts struct {
	key         string // as in Event.Key; "" = the orphans
	first, last int64  // of any event, of Counts.Clicks; kept in the link's first entry
	clicks      []click
	summed      *rollup.Rollup // clicks that were summed up, without Counts; nil until then
	ordinal     uint32
	next        int32 // 0 = none: entry 0 is never a second
	chained     bool  // some other entry's next leads here
	counts      smallCounts
}

// smallCounts are Counts of one batch, which no quarter brings to 2^32.
type smallCounts struct{ clicks, humans, previews, fallbacks, refused uint32 }

func (c smallCounts) counts() rollup.Counts {
	return rollup.Counts{
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
	utm           [len(headers.UTM{})]uint32
}

const (
	flushThreshold = 128 // clicks of a link and quarter that are kept one by one
	piece          = 512 // entries of a piece of links
	maxExtras      = 1<<16 - 1

	// What things weigh, for the bound of memory.
	clickBytes = 24
	linkBytes  = 112 + 40 // the entry and its place in the index
	extraBytes = 28 + 28 + 20
)

func newAggregate(s rollup.State) *aggregate {
	return &aggregate{
		state: s, from: s.Position, index: make(map[string]int32),
		texts:    interner{ids: make(map[string]uint32)},
		extras:   make(map[extra]uint16),
		extraIDs: make([]extra, 1),
		names:    useragent.AllNames(),
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
func (a *aggregate) add(e *clicklog.Event, parser *useragent.Parser, group []byte) {
	key := e.Key
	if e.Outcome == clicks.Orphan {
		key = nil
	}
	var who useragent.Agent
	var c click
	if !e.Preview() && (e.Outcome == clicks.Redirected || e.Outcome == clicks.Orphan) {
		if who = e.Agent; !who.Parsed() {
			who = parser.Parse(e.UserAgent).Agent
		}
		if e.Outcome == clicks.Redirected {
			c = a.click(e, who)
		}
	}
	a.count(key, e, who, &c)
	if group != nil {
		a.count(group, e, who, &c)
	}
}

// count adds an event to what is counted under a key.
func (a *aggregate) count(key []byte, e *clicklog.Event, who useragent.Agent, c *click) {
	l, q := a.quarter(key, rollup.BucketAt(rollup.Quarter, time.UnixMilli(e.Time)).Ordinal)
	if l.first == 0 || e.Time < l.first {
		l.first = max(e.Time, 1)
	}
	switch {
	case e.Preview():
		if e.Outcome == clicks.Redirected || e.Outcome == clicks.Orphan {
			q.counts.previews++
		}
	case e.Outcome == clicks.FellBack:
		q.counts.fallbacks++
	case e.Outcome == clicks.Refused:
		q.counts.refused++
	case e.Outcome == clicks.Redirected, e.Outcome == clicks.Orphan:
		q.counts.clicks++
		if !who.Bot() {
			q.counts.humans++
		}
		l.last = max(l.last, e.Time)
		if e.Outcome == clicks.Redirected {
			a.addClick(q, *c)
		}
	}
}

// click makes numbers of the dimensions of an event.
func (a *aggregate) click(e *clicklog.Event, who useragent.Agent) click {
	var host [256]byte
	c := click{
		visitor:  e.Visitor,
		referrer: a.texts.id(headers.ReferrerHost(e.Referrer, host[:])),
		extra:    a.extra(e),
		language: headers.PrimaryLanguage(e.Language),
		country:  e.Country,
		minute:   uint8(max(e.Time, 0) / 60_000 % rollup.MinutesPerQuarter),
	}
	c.device, c.browser, c.os = who.Numbers()
	if !who.Bot() {
		c.flags |= byHuman
	}
	switch {
	case e.Flags&clicks.Warned != 0:
		c.flags |= byWarning
	case e.Flags&clicks.ViaQR != 0:
		c.flags |= byQR
	}
	return c
}

func (a *aggregate) addClick(q *linkCounts, c click) {
	before := cap(q.clicks)
	q.clicks = append(q.clicks, c)
	a.bytes += clickBytes * (cap(q.clicks) - before)
	if len(q.clicks) >= flushThreshold {
		a.sumUp(q)
	}
}

// sumUp turns the clicks of an entry into counters.
func (a *aggregate) sumUp(q *linkCounts) {
	if q.summed == nil {
		q.summed = new(rollup.Rollup)
	}
	before := q.summed.Size()
	a.summer.reset()
	q.summed.Add(a.summer.sum(a, q.clicks)) // which keeps nothing of it
	for d := range q.summed.Dimensions {
		if len(q.summed.Dimensions[d]) > 2*clicks.MaxValues {
			q.summed.Dimensions[d] = rollup.LimitValues(q.summed.Dimensions[d], clicks.MaxValues)
		}
	}
	a.bytes += q.summed.Size() - before
	q.clicks = q.clicks[:0]
}

// extra returns the number of the rare dimensions of e.
func (a *aggregate) extra(e *clicklog.Event) uint16 {
	fields, tagged := headers.ParseUTM(e.Query)
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
			return 0 // anyone can invent campaigns; a batch knows 65,535 of them
		}
		id = uint16(len(a.extraIDs))
		a.extras[x] = id
		a.extraIDs = append(a.extraIDs, x)
		a.bytes += extraBytes
	}
	return id
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
		s = clicks.Other
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

// summer builds roll-ups from clicks. Its buffers are used again by the next
// chunk, so a flush of 100,000 links allocates for one chunk only. Owned by one
// goroutine.
type summer struct {
	numbers []uint64       // of one dimension: number << 1 | human
	values  []rollup.Value // of all roll-ups of a chunk
	tags    []uint64
	minutes []rollup.Minute
	rollups []rollup.Rollup
	deltas  []rollup.BucketDelta
}

// reset makes everything that sum returned invalid.
func (s *summer) reset() {
	s.values, s.tags, s.minutes, s.rollups = s.values[:0], s.tags[:0], s.minutes[:0], s.rollups[:0]
	s.deltas = s.deltas[:0]
}

// buckets returns room for a quarter and its day, which is what most links need.
func (s *summer) buckets() []rollup.BucketDelta {
	n := len(s.deltas)
	s.deltas = append(s.deltas, rollup.BucketDelta{}, rollup.BucketDelta{})
	return s.deltas[n : n : n+2]
}

// sum returns the roll-up of the clicks without Counts, valid until reset.
func (s *summer) sum(a *aggregate, all []click) *rollup.Rollup {
	s.rollups = append(s.rollups, rollup.Rollup{})
	r := &s.rollups[len(s.rollups)-1]
	r.Minutes = s.sumMinutes(all)
	for d := range clicks.Dimension(clicks.NumDimensions) {
		r.Dimensions[d] = s.sumDimension(a, d, all)
	}
	begin := len(s.tags)
	for i := range all {
		if all[i].flags&byHuman != 0 {
			s.tags = append(s.tags, all[i].visitor)
		}
	}
	end := len(s.tags)
	r.Visitors.Add(s.tags[begin:end:end])
	return r
}

func (s *summer) sumMinutes(all []click) []rollup.Minute {
	var count, humans [rollup.MinutesPerQuarter]uint64
	for i := range all {
		count[all[i].minute]++
		if all[i].flags&byHuman != 0 {
			humans[all[i].minute]++
		}
	}
	begin := len(s.minutes)
	for i := range count {
		if count[i] > 0 {
			s.minutes = append(s.minutes, rollup.Minute{Index: uint8(i), Clicks: count[i], Humans: humans[i]})
		}
	}
	return s.minutes[begin:len(s.minutes):len(s.minutes)]
}

// sumDimension counts the values of one dimension. Clicks without a value are not
// counted, but for the dimensions that every click has.
func (s *summer) sumDimension(a *aggregate, d clicks.Dimension, all []click) []rollup.Value {
	s.numbers = s.numbers[:0]
	for i := range all {
		c := &all[i]
		n := a.number(d, c)
		if n == 0 && optional(d) {
			continue
		}
		n <<= 1
		n |= uint64(c.flags & byHuman)
		s.numbers = append(s.numbers, n)
	}
	if len(s.numbers) == 0 {
		return nil
	}
	slices.Sort(s.numbers)
	begin := len(s.values)
	last := ^uint64(0)
	for _, n := range s.numbers {
		if n>>1 != last {
			last = n >> 1
			s.values = append(s.values, rollup.Value{Value: a.valueName(d, last)})
		}
		v := &s.values[len(s.values)-1]
		v.Clicks++
		v.Humans += n & 1
	}
	values := s.values[begin:len(s.values):len(s.values)]
	if len(values) > 1 {
		slices.SortFunc(values, func(x, y rollup.Value) int { return strings.Compare(x.Value, y.Value) })
	}
	return values
}

// optional reports whether clicks without a value of d are left out of it.
func optional(d clicks.Dimension) bool {
	switch d {
	case clicks.ReferrerHost, clicks.Device, clicks.Browser, clicks.OS, clicks.Trigger:
		return false
	default:
		return true
	}
}

// number returns the value of a dimension as a number; 0 = none.
func (a *aggregate) number(d clicks.Dimension, c *click) uint64 {
	switch d {
	case clicks.Country:
		return uint64(c.country[0])<<8 | uint64(c.country[1])
	case clicks.ReferrerHost:
		return uint64(c.referrer)
	case clicks.Device:
		return uint64(c.device)
	case clicks.Browser:
		return uint64(c.browser)
	case clicks.OS:
		return uint64(c.os)
	case clicks.Language:
		return uint64(c.language)
	case clicks.Trigger:
		return uint64(c.flags&(byQR|byWarning)) >> 1
	default:
		return uint64(a.extraIDs[c.extra].number(d))
	}
}

// number returns a rare dimension's value as a number; the zero extra has none.
func (x *extra) number(d clicks.Dimension) uint32 {
	switch d {
	case clicks.City:
		return x.city
	case clicks.Network:
		return x.network
	default:
		return x.utm[d-clicks.UTMSource]
	}
}

// valueName returns the name of a number that number returned.
func (a *aggregate) valueName(d clicks.Dimension, n uint64) string {
	switch d {
	case clicks.Country:
		return string([]byte{byte(n >> 8), byte(n)})
	case clicks.Device:
		return a.names.Device[n]
	case clicks.Browser:
		return a.names.Browser[n]
	case clicks.OS:
		return a.names.OS[n]
	case clicks.Language:
		return headers.LanguageName(uint16(n))
	case clicks.Trigger:
		return [...]string{clicks.TriggerLink, clicks.TriggerQR, clicks.TriggerWarning}[n]
	case clicks.ReferrerHost:
		return cmp.Or(a.texts.text(uint32(n)), clicks.Direct)
	default:
		return a.texts.text(uint32(n))
	}
}
