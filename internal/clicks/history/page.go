package history

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/link"
)

// Cursor is a place between two clicks of a History. The zero Cursor is the
// newest end.
type Cursor struct {
	Position clicklog.Position // of a block
	Record   uint32            // clicks of the block from this one on are behind the bookmark
}

// Query asks for a page of the clicks of a link, or of all links of a group.
type Query struct {
	Key      link.Key  // or a GroupKey
	From, To time.Time // From included, To not; zero = open
	Limit    int       // the most clicks of the page; at least 1
	Before   Cursor    // the Next of the page before

	// Keep chooses clicks; nil = all. It is called while the page is made, for clicks that
	// may not come into it, too.
	Filter func(*clicks.Click) bool
}

// Page is a part of the clicks that were asked for, newest first. Newest is by their order
// in the log, which is that of time but for the tenth of a second in which clicks
// are captured together.
//
// A page may have fewer clicks than were asked for, even none, while More says that
// there may be others: the work of one page is bounded.
type Page struct {
	Clicks []clicks.Click
	Next   Cursor
	More   bool
	// Damaged: part of the log that this page went through cannot be read, so that
	// clicks may be missing, here or up to where the page before ended.
	Damaged bool
}

// What one page may cost: pageBytes of segments are read and checked, in some
// 30 ms; pageSegments indexes are searched, in 30 µs each; one index is rebuilt.
const (
	pageBytes    = 16 << 20
	pageSegments = 256
)

// Page returns the clicks before a bookmark. Clicks are found once they are in the
// log, 0.1 s after their answer. Segments that retention removes meanwhile end the
// walk; what is damaged is left out, and the page says so. It runs in the queue of the Yielder.
func (h *History) Page(ctx context.Context, q Query) (p Page, err error) {
	err = h.yielder.Queue(ctx, func(ctx context.Context) error {
		p, err = h.page(ctx, q)
		return err
	})
	return p, err //nolint:wrapcheck // page's own
}

func (h *History) page(ctx context.Context, q Query) (Page, error) {
	h.follow(ctx)
	w := walk{
		history: h, query: q, key: clicklog.AppendLinkKey(nil, q.Key), left: pageBytes,
		from: math.MinInt64, to: math.MaxInt64, before: q.Before, matches: make([]match, 0, min(q.Limit, 64)),
	}
	if !q.From.IsZero() {
		w.from = q.From.UnixMilli()
	}
	if !q.To.IsZero() {
		w.to = q.To.UnixMilli()
	}
	if w.before == (Cursor{}) {
		w.before = Cursor{Position: clicklog.Position{Segment: math.MaxInt64}}
	}
	all := h.log.Segments()
	for i, s := range slices.Backward(all) {
		if s.Number > w.before.Position.Segment {
			continue
		}
		w.asked = s.Begun() < w.to && (i+1 == len(all) || all[i+1].Begun() > w.from)
		if w.segments++; w.segments > pageSegments {
			w.pause(Cursor{Position: clicklog.Position{Segment: s.Number + 1}})
			break
		}
		if err := w.segment(ctx, s); err != nil {
			return Page{}, err
		}
		if w.page.More {
			break
		}
	}
	return w.page, nil
}

// walk is one page being filled. Owned by Page.
type walk struct {
	history  *History
	query    Query
	key      []byte
	from, to int64
	before   Cursor
	left     int64 // bytes that may still be read
	segments int
	asked    bool    // the segment at hand may hold clicks of the time that is asked for
	rebuilt  bool    // an index was rebuilt for this page
	matches  []match // of one granule; their buffers are used again
	page     Page
}

// pause ends the page before a bookmark.
func (w *walk) pause(at Cursor) { w.page.Next, w.page.More = at, true }

// segment adds a segment's clicks, the newest first.
func (w *walk) segment(ctx context.Context, s clicklog.Segment) error {
	granules, err := w.granules(ctx, s)
	if err != nil || len(granules) == 0 {
		return err
	}
	scan, err := clicklog.OpenSegment(w.history.dir, s)
	if gone(err) {
		return nil // trimmed meanwhile
	}
	if err != nil {
		return err
	}
	defer scan.Close()
	for _, g := range slices.Backward(granules) {
		at := clicklog.Position{Segment: s.Number, Offset: g.offset}
		if at.Compare(w.before.Position) > 0 || at == w.before.Position && w.before.Record == 0 ||
			g.latest < w.from || g.earliest >= w.to {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if w.left <= 0 {
			w.pause(Cursor{Position: clicklog.Position{Segment: s.Number, Offset: g.end}})
			return nil
		}
		w.left -= g.end - g.offset
		if err := w.granule(ctx, scan, g); err != nil || w.page.More {
			return err
		}
	}
	return nil
}

// granules returns where a segment may have clicks of the query, from memory, from
// its index, or from an index that it rebuilds.
func (w *walk) granules(ctx context.Context, s clicklog.Segment) ([]granule, error) {
	h, digest := w.history, keyDigest(w.key)
	h.mu.Lock()
	for _, x := range append(slices.Clip(h.full), h.tail) {
		if x != nil && x.number == s.Number {
			defer h.mu.Unlock()
			w.damaged(x.gap())
			if s.Number < h.reader.Position().Segment { // no block of it is still to come
				w.covers(x.size, s)
			}
			return w.find(x, digest)
		}
	}
	following := s.Number >= h.reader.Position().Segment
	h.mu.Unlock()
	if following || s.Size == 0 {
		return nil, nil // nothing was read of it yet
	}
	path := filepath.Join(h.dir, clicklog.IndexName(s.Number))
	if x, err := openIndex(path, s); err == nil {
		defer x.close()
		if found, err := w.find(x, digest); err == nil {
			w.covers(x.size, s)
			return found, nil
		}
	}
	if w.rebuilt {
		w.pause(Cursor{Position: clicklog.Position{Segment: s.Number + 1}})
		return nil, nil
	}
	w.rebuilt = true
	x, err := h.rebuild(ctx, s)
	switch {
	case gone(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	h.write(ctx, x)
	w.covers(x.size, s)
	return w.find(x, digest)
}

// index is where a segment has the clicks of which link.
type index interface {
	find(digest uint64) ([]granule, error)
	all() []granule
}

// find returns where clicks of the link may lie: of a group, everywhere.
func (w *walk) find(x index, digest uint64) ([]granule, error) {
	if clicks.IsGroup(w.query.Key) {
		return x.all(), nil
	}
	return x.find(digest)
}

// covers notes whether an index of size bytes without a gap leaves out a part of its
// segment, which is damaged there.
func (w *walk) covers(size int64, s clicklog.Segment) { w.damaged(size < s.Size) }

func (w *walk) damaged(is bool) { w.page.Damaged = w.page.Damaged || is && w.asked }

// match is a click of the query, copied out of its block.
type match struct {
	event clicklog.Event
	buf   []byte
	at    Cursor
}

// granule adds the clicks of a granule. Of many it keeps only the newest that the
// page has room for.
func (w *walk) granule(ctx context.Context, scan *clicklog.Scanner, g granule) error {
	room := w.query.Limit - len(w.page.Clicks)
	w.matches = w.matches[:0]
	next := 0 // the oldest match once there are room of them
	scan.Range(g.offset, g.end)
	for {
		b, err := scan.NextGood(func(d *clicklog.DamageError) { w.history.noteDamage(d); w.damaged(true) })
		if err != nil {
			break // the end
		}
		of, err := w.history.owners(ctx, w.query.Key, &b)
		if err != nil {
			return err
		}
		at := Cursor{Position: b.At}
		_ = b.Events(func(e *clicklog.Event) error {
			if at.compare(w.before) >= 0 {
				return errPast
			}
			if w.takes(e, of) {
				if len(w.matches) < room {
					w.matches = append(w.matches, match{})
					w.matches[len(w.matches)-1].copy(e, at)
				} else {
					w.matches[next].copy(e, at)
					next = (next + 1) % room
				}
			}
			at.Record++
			return nil
		})
	}
	n := len(w.matches)
	for i := range n {
		m := &w.matches[(next+n-1-i)%n]
		w.page.Clicks = append(w.page.Clicks, m.event.Click(w.history.agents))
	}
	if n == room {
		w.pause(w.matches[next].at)
	}
	return nil
}

// takes reports whether an event is of the query; of says whose events are.
func (w *walk) takes(e *clicklog.Event, of func(*clicklog.Event) []byte) bool {
	if e.Outcome == clicks.Orphan || e.Time < w.from || e.Time >= w.to || string(of(e)) != string(w.key) {
		return false
	}
	if w.query.Filter == nil {
		return true
	}
	c := e.Click(w.history.agents)
	return w.query.Filter(&c)
}

// errPast ends a block at the bookmark.
var errPast = errors.New("behind the bookmark")

func (m Cursor) compare(o Cursor) int {
	if c := m.Position.Compare(o.Position); c != 0 {
		return c
	}
	return int(m.Record) - int(o.Record)
}

// copy makes m a copy of an event that outlives its block.
func (m *match) copy(e *clicklog.Event, at Cursor) {
	m.event, m.at, m.buf = *e, at, m.buf[:0]
	fields := [...]*[]byte{&m.event.Key, &m.event.UserAgent, &m.event.Referrer, &m.event.Language, &m.event.Query, &m.event.City, &m.event.Network, &m.event.BotName}
	total := 0
	for _, f := range fields {
		total += len(*f)
	}
	m.buf = slices.Grow(m.buf, total)
	for _, f := range fields {
		begin := len(m.buf)
		m.buf = append(m.buf, *f...)
		*f = m.buf[begin:len(m.buf):len(m.buf)]
	}
}
