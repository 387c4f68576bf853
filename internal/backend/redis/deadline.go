package redis

import (
	"context"
	"sync/atomic"
	"time"
)

// sharedFifth is the part of the limit for which calls share a deadline.
const sharedFifth = 5

// deadlines ends calls that begin together at one time: a timer for each of them would cost
// about as much as asking Redis does. A call gets four fifths of the limit at least; it gets
// more than the limit only where its answer may have come and this process, busy with other
// things, has not looked yet (arrivals). It is safe for many goroutines.
type deadlines struct {
	limit time.Duration
	last  atomic.Pointer[deadline]
	look  func() // hands out what has arrived
}

func newDeadlines(limit time.Duration, look func()) *deadlines {
	return &deadlines{limit: limit, look: look}
}

// next returns a context for a call that begins now, and ends with left.
func (d *deadlines) next() *deadline {
	now := time.Now()
	last := d.last.Load()
	if last != nil && now.Before(last.at.Add(d.limit/sharedFifth-d.limit)) {
		last.calls.Add(1)
		return last
	}
	made := &deadline{at: now.Add(d.limit), done: make(chan struct{})}
	made.calls.Add(1)
	if !d.last.CompareAndSwap(last, made) {
		made = d.last.Load() // whoever was first began within the same moment
		made.calls.Add(1)
		return made
	}
	time.AfterFunc(d.limit, func() {
		if made.calls.Load() > 0 {
			d.look()
		}
		close(made.done)
	})
	return made
}

// deadline is a context without values that only ends by its time.
type deadline struct {
	at    time.Time
	done  chan struct{}
	calls atomic.Int64 // that have not left
}

// left says that a call has ended.
func (d *deadline) left() { d.calls.Add(-1) }

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} { return d.done }

// Err implements context.Context.
func (d *deadline) Err() error {
	select {
	case <-d.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value implements context.Context.
func (*deadline) Value(any) any { return nil }
