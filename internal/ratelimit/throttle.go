package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/background"
)

const (
	setSlots = 8       // places that one bucket may have
	sets     = 1 << 14 // 131,072 buckets, in 3.3 MB
	partSets = 1 << 8  // are allocated together

	chargesAtOnce = 256 // buckets in one call to a Ledger
	mostWaiting   = 1024
	retryAfter    = 100 * time.Millisecond // after a Ledger that failed
)

// Throttle spends one limit for many buckets, for callers that wait for nothing: a charge is some
// atomic operations on memory of this process, and locks only when a bucket is new. It allocates
// nothing once each of 64 parts of the buckets had one.
//
// With a Ledger, servers grant the limit together. Each grants by itself, and adds it up
// there in the background when it has granted half a batch, a tenth of the limit (at least ten, or all of a smaller
// one). It never has more than one batch owed: in any time, all servers together grant what one
// bucket grants and at most a batch each, and what was granted too much is missing later. While the
// Ledger fails, each server grants the limit by itself.
//
// Memory is bounded: a new bucket takes the place of the one of eight that is next to be full. A
// bucket that is spent by more than half is not given up: the new one shares it.
type Throttle struct {
	limit          Limit
	interval, size int64 // of the limit, in nanoseconds
	batch, due     int32 // cells that may be owed to the Ledger; from which on they are added
	base           time.Time
	ledger         Ledger     // nil = this process is alone
	waiting        chan *slot // to be added
	alone          atomic.Bool
	parts          [sets / partSets]atomic.Pointer[[partSets]slotSet]
}

// slotSet is where a bucket may be.
type slotSet struct {
	mu    sync.Mutex // of changes of slot.bucket
	slots [setSlots]slot
}

// slot is one bucket. Its number is that of Take, since Throttle.base.
type slot struct {
	bucket atomic.Uint64 // 0 = none
	full   atomic.Int64
	owed   atomic.Int32 // cells that the Ledger does not know, those in flight included
	queued atomic.Bool
}

// NewThrottle returns a Throttle whose buckets are all full, for a valid limit. Its time begins at
// now; l may be nil.
func NewThrottle(limit Limit, l Ledger, now time.Time) *Throttle {
	batch := max(limit.Burst/10, min(limit.Burst, 10))
	return &Throttle{
		limit: limit, interval: int64(limit.Interval()), size: int64(limit.Interval()) * int64(limit.Burst),
		batch: int32(batch), due: int32(max(1, limit.Burst/20)), base: now,
		ledger: l, waiting: make(chan *slot, mostWaiting),
	}
}

// Batch is how many cells a server may grant before it has added them to the Ledger.
func (t *Throttle) Batch() int { return int(t.batch) }

// Take spends one cell of a bucket and returns 0, or spends nothing and returns when the next is
// there.
func (t *Throttle) Take(bucket uint64, now time.Time) (wait time.Duration) {
	ns := int64(now.Sub(t.base))
	s := t.find(bucket, ns)
	for {
		full := s.full.Load()
		after := max(full, ns) + t.interval
		if after-ns > t.size {
			return time.Duration(after - ns - t.size)
		}
		if !s.full.CompareAndSwap(full, after) {
			continue
		}
		if t.ledger != nil && !t.owe(s, full <= ns) {
			s.full.Add(-t.interval)
			return time.Millisecond // about what a Ledger takes
		}
		return 0
	}
}

// Peek is Take that spends nothing.
func (t *Throttle) Peek(bucket uint64, now time.Time) (wait time.Duration) {
	ns := int64(now.Sub(t.base))
	s := t.lookup(bucket)
	if s == nil {
		return 0
	}
	return time.Duration(max(0, max(s.full.Load(), ns)+t.interval-ns-t.size))
}

// GiveBack undoes a Take.
func (t *Throttle) GiveBack(bucket uint64) {
	if s := t.lookup(bucket); s != nil {
		s.full.Add(-t.interval)
		s.paid(1)
	}
}

// owe counts a cell as owed; false = there are too many of them. What a bucket owed that is full
// has come back at the Ledger, too.
func (t *Throttle) owe(s *slot, full bool) bool {
	if full {
		s.owed.Store(0)
	}
	n := s.owed.Add(1)
	if n >= t.due {
		t.enqueue(s)
	}
	if n <= t.batch {
		return true
	}
	s.owed.Add(-1)
	return t.alone.Load()
}

func (t *Throttle) enqueue(s *slot) {
	if s.queued.Load() || s.queued.Swap(true) {
		return
	}
	select {
	case t.waiting <- s:
	default:
		s.queued.Store(false) // the next charge tries
	}
}

// paid takes off cells that the Ledger knows.
func (s *slot) paid(n int32) {
	for {
		old := s.owed.Load()
		if s.owed.CompareAndSwap(old, max(0, old-n)) {
			return
		}
	}
}

// lookup returns the place of a bucket that was charged, or nil.
func (t *Throttle) lookup(bucket uint64) *slot {
	if part := t.parts[bucket%sets/partSets].Load(); part != nil {
		return part[bucket%partSets].lookup(bucket)
	}
	return nil
}

// set returns where a bucket may be.
func (t *Throttle) set(bucket uint64) *slotSet {
	at := &t.parts[bucket%sets/partSets]
	part := at.Load()
	if part == nil {
		at.CompareAndSwap(nil, new([partSets]slotSet))
		part = at.Load()
	}
	return &part[bucket%partSets]
}

func (set *slotSet) lookup(bucket uint64) *slot {
	for i := range set.slots {
		if set.slots[i].bucket.Load() == bucket {
			return &set.slots[i]
		}
	}
	return nil
}

// find returns the place of a bucket.
func (t *Throttle) find(bucket uint64, now int64) *slot {
	set := t.set(bucket)
	if s := set.lookup(bucket); s != nil {
		return s
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	first := &set.slots[0]
	for i := range set.slots {
		s := &set.slots[i]
		switch held := s.bucket.Load(); {
		case held == bucket:
			return s
		case held == 0:
			s.bucket.Store(bucket)
			return s
		case s.full.Load() < first.full.Load():
			first = s
		}
	}
	if first.full.Load()-now <= t.size/2 {
		first.bucket.Store(bucket)
		first.full.Store(now)
		first.owed.Store(0)
	}
	return first
}

// Run adds up what was granted until ctx ends.
func (t *Throttle) Run(ctx context.Context) error {
	var slots []*slot
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-t.waiting:
			slots = append(slots[:0], s)
		}
		for len(slots) < chargesAtOnce && len(t.waiting) > 0 {
			slots = append(slots, <-t.waiting)
		}
		err := t.exchange(ctx, slots)
		t.alone.Store(err != nil)
		for _, s := range slots {
			s.queued.Store(false)
			if err == nil && s.owed.Load() >= t.due {
				t.enqueue(s)
			}
		}
		if err != nil {
			background.Sleep(ctx, retryAfter)
		}
	}
}

// exchange tells the Ledger what was granted, and learns what others have.
func (t *Throttle) exchange(ctx context.Context, slots []*slot) error {
	spent := make([]Spent, len(slots))
	cells := make([]int32, len(slots))
	for i, s := range slots {
		cells[i] = s.owed.Load()
		spent[i] = Spent{s.bucket.Load(), time.Duration(int64(cells[i]) * t.interval), time.Duration(t.size)}
	}
	began := time.Now()
	levels, err := t.ledger.Add(ctx, spent)
	if err != nil {
		return err //nolint:wrapcheck // it says only whether the Ledger answers
	}
	for i, s := range slots {
		if s.bucket.Load() == spent[i].Bucket {
			s.paid(cells[i])
		}
	}
	for _, l := range levels {
		if s := t.lookup(l.Bucket); s != nil {
			t.raise(s, int64(began.Sub(t.base))+int64(l.Full)+int64(s.owed.Load())*t.interval)
		}
	}
	return nil
}

func (t *Throttle) raise(s *slot, full int64) {
	for {
		old := s.full.Load()
		if full <= old || s.full.CompareAndSwap(old, full) {
			return
		}
	}
}

// Named is a Throttle as a Store of charges whose Limit is its own.
type Named struct {
	Throttle *Throttle
	Key      HashKey
}

// Spend implements Store.
func (n Named) Spend(_ context.Context, now time.Time, charges []Charge) ([]Verdict, error) {
	verdicts, refused := make([]Verdict, len(charges)), false
	for i, c := range charges {
		if err := c.Validate(); err != nil {
			return nil, err
		}
		wait := n.Throttle.Peek(n.Key.Sum(c.Bucket, ""), now)
		verdicts[i] = Verdict{Allowed: wait == 0 && c.Cost <= c.Limit.Burst, Limit: c.Limit.Burst, RetryAfter: wait}
		refused = refused || !verdicts[i].Allowed
	}
	for i, c := range charges {
		for range c.Cost {
			if refused {
				break
			}
			wait := n.Throttle.Take(n.Key.Sum(c.Bucket, ""), now)
			verdicts[i].Allowed, verdicts[i].RetryAfter = wait == 0, wait
		}
	}
	return verdicts, nil
}
