package search

import (
	"bytes"
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/link"
)

// idSpan is a range of ids, both included.
type idSpan struct{ first, last link.ID }

func compare(a, b link.ID) int { return bytes.Compare(a[:], b[:]) }

// after returns the id that follows.
func after(id link.ID) link.ID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			return id
		}
	}
	return link.ID(bytes.Repeat([]byte{0xff}, len(id)))
}

// firstID is not behind any id of the time or a later one.
func firstID(t time.Time) (id link.ID) {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(0, t.UnixMilli()))<<16)
	copy(id[:6], ms[:6])
	return id
}

// cutBehind leaves of the spans what lies behind an id.
func cutBehind(spans []idSpan, id link.ID) (rest []idSpan) {
	for _, s := range spans {
		if compare(s.first, id) <= 0 {
			s.first = after(id)
		}
		if compare(s.first, s.last) <= 0 {
			rest = append(rest, s)
		}
	}
	return rest
}

// lateIDs collects the ids that are stored behind the walk's back.
type lateIDs struct {
	horizon atomic.Int64 // Unix milliseconds that the walk has passed, or passes now

	mu  sync.Mutex
	ids []link.ID // guarded by mu
	all *idSpan   // guarded by mu: instead of ids that were too many; nil = none
}

// maxLate bounds the ids that wait; more become one span.
const maxLate = 1024

// passed is called, by one goroutine, before the walk reads the store up to t. It never
// goes back with the clock: what is stored from then on is behind the walk.
func (l *lateIDs) passed(t time.Time) { l.horizon.Store(max(l.horizon.Load(), t.UnixMilli())) }

func (l *lateIDs) stored(id link.ID) {
	if id.Time().UnixMilli() > l.horizon.Load() {
		return // the walk will come to it
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids = append(l.ids, id); len(l.ids) <= maxLate {
		return
	}
	if l.all == nil {
		l.all = &idSpan{first: firstID(time.UnixMilli(math.MaxInt64 >> 16))}
	}
	for _, id := range l.ids {
		if compare(id, l.all.first) < 0 {
			l.all.first = id
		}
		if compare(id, l.all.last) > 0 {
			l.all.last = id
		}
	}
	l.ids = l.ids[:0]
}

// take returns what came late, up to the id that the walk has read.
func (l *lateIDs) take(walked link.ID) (spans []idSpan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.ids {
		spans = append(spans, idSpan{id, id})
	}
	if l.all != nil {
		spans = append(spans, *l.all)
	}
	l.ids, l.all = nil, nil
	n := 0
	for _, s := range spans {
		if compare(s.first, walked) <= 0 {
			spans[n] = s
			n++
		}
	}
	return spans[:n]
}
