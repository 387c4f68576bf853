package worker

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// maxQueued is how many bytes of a partition wait in memory before no more are fetched; one
// fetch may come on top.
const maxQueued = 4 << 20

// queue is what was read from a partition and is in no block yet.
type queue struct {
	resume func() // has more fetched
	come   chan struct{}

	mu      sync.Mutex
	records []*kgo.Record // guarded by mu
	since   time.Time     // guarded by mu: when the first of records came
	bytes   int           // guarded by mu
	paused  bool          // guarded by mu

	have []*kgo.Record // owned by the partition's goroutine
	came time.Time     // owned by the partition's goroutine: when the first of have did
}

func newQueue(resume func()) *queue { return &queue{resume: resume, come: make(chan struct{}, 1)} }

// put appends records, and reports whether no more are to be fetched for now.
func (q *queue) put(records []*kgo.Record) (pause bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.records) == 0 {
		q.since = time.Now()
	}
	q.records = append(q.records, records...)
	for _, r := range records {
		q.bytes += len(r.Key) + len(r.Value)
	}
	pause = q.bytes > maxQueued && !q.paused
	q.paused = q.paused || pause
	select {
	case q.come <- struct{}{}:
	default:
	}
	return pause
}

// next returns the next record below an offset; nil when there is none before the timer
// fires. A nil timer never does.
func (q *queue) next(ctx context.Context, below int64, timer <-chan time.Time) (*kgo.Record, error) {
	for {
		if len(q.have) == 0 {
			q.take()
		}
		if len(q.have) > 0 {
			r := q.have[0]
			if r.Offset >= below {
				return nil, nil //nolint:nilnil // there is none, which is no error
			}
			q.have = q.have[1:]
			return r, context.Cause(ctx)
		}
		select {
		case <-q.come:
		case <-timer:
			return nil, nil //nolint:nilnil // there is none, which is no error
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// empty reports whether nothing waits.
func (q *queue) empty() bool {
	if len(q.have) == 0 {
		q.take()
	}
	return len(q.have) == 0
}

// take takes what has come.
func (q *queue) take() {
	q.mu.Lock()
	q.have, q.came, q.records, q.bytes = q.records, q.since, nil, 0
	resume := q.paused
	q.paused = false
	q.mu.Unlock()
	if resume {
		q.resume()
	}
}

const (
	// waitFirst and waitMost are how long all partitions of a worker wait before anybody
	// inserts again: a database that is ill gets no storm of what it could not take.
	waitFirst = 250 * time.Millisecond
	waitMost  = 10 * time.Second

	// maxInserts is how many blocks of a worker are inserted at once.
	maxInserts = 2
)

// pressure keeps the inserts of all partitions from being more than the store can take.
type pressure struct {
	room chan struct{} // holds one for each insert under way

	mu    sync.Mutex
	wait  time.Duration // guarded by mu: after the next failure
	until time.Time     // guarded by mu: nobody inserts before
}

func newPressure() *pressure {
	return &pressure{room: make(chan struct{}, maxInserts), wait: waitFirst}
}

// do calls f when it may; an error of f has everybody wait for longer. It returns f's error, or
// that of ctx.
func (p *pressure) do(ctx context.Context, f func() error) error {
	select {
	case p.room <- struct{}{}:
		defer func() { <-p.room }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.mu.Lock()
	rest := time.Until(p.until)
	p.mu.Unlock()
	if err := pause(ctx, rest); err != nil {
		return err
	}
	err := f()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.wait, p.until = waitFirst, time.Time{}
		return nil
	}
	p.until = time.Now().Add(p.wait/2 + rand.N(p.wait)) // several workers come one after the other
	p.wait = min(2*p.wait, waitMost)
	return err
}

// pause waits for d, or until ctx ends, whose error it returns.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
