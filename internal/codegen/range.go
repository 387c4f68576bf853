package codegen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"curt/internal/link"
	"curt/internal/repeatlog"
)

const (
	// defaultRange ids are leased at once: at 10,000 creates a second, the highest
	// rate that curt promises, one lease a second; at 10 a second a range outlives
	// 16 minutes without the Leaser.
	defaultRange = 10_000

	// leaseTimeout bounds one lease of Run, behind which Next may be waiting.
	leaseTimeout = 5 * time.Second

	// leaseRetry is Run's pause after a lease that failed.
	leaseRetry = time.Second
)

// RangeConfig says what a Range leases and how it makes codes.
type RangeConfig struct {
	Leaser      Leaser
	Permutation *Permutation
	Length      int          // of the codes: MinLength to MaxLength
	Prefix      string       // of the counter's name; "" = DefaultPrefix
	Size        uint64       // ids per lease; 0 = 10,000
	Log         *slog.Logger // nil = silence
}

// Range is the strategy "range": it leases ranges of ids and makes each id a code.
// Its promise is Unique. Next takes one atomic addition as long as the range at
// hand lasts; while Run runs, the range after it is already there.
//
// A range belongs to its process for ever, so a process that was paused for a day
// goes on where it stood. Ids that a process did not use before it ended are lost;
// the space is large enough (62^7 holds 352 million ranges of 10,000).
type Range struct {
	leaser  Leaser
	perm    *Permutation
	length  int
	counter string
	size    uint64
	log     *slog.Logger

	current   atomic.Pointer[lease]
	exhausted atomic.Bool   // the counter went past the space; it never comes back
	wake      chan struct{} // capacity 1: Run should look whether a spare is wanted

	// refill holds one token. Who takes it may lease and owns spare.
	refill chan struct{}
	spare  *lease

	stats rangeCounters
}

// lease is one range. Its ids from next to end are free.
type lease struct {
	first, end uint64
	next       atomic.Uint64
}

// NewRange returns a Range that holds nothing yet. It panics on a length out of
// bounds: that is the business of whoever reads the settings.
func NewRange(c RangeConfig) *Range {
	checkLength(c.Length)
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.Size == 0 {
		c.Size = defaultRange
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	r := &Range{
		leaser: c.Leaser, perm: c.Permutation, length: c.Length, log: c.Log,
		counter: Counter(c.Prefix, c.Length), size: min(c.Size, Space(c.Length)),
		wake: make(chan struct{}, 1), refill: make(chan struct{}, 1),
	}
	r.refill <- struct{}{}
	return r
}

// DefaultPrefix begins the name of every counter that codes come from.
const DefaultPrefix = "codes-"

// Counter names the counter of the codes of one length, such as "codes-7". Each
// length has its own, because each has its own permutation.
func Counter(prefix string, length int) string { return prefix + strconv.Itoa(length) }

// Next returns the next code. It asks the Leaser only when no range is at hand;
// of many callers that find none, one asks and the rest wait. The need does not
// matter. Errors are those of Generator.
func (r *Range) Next(ctx context.Context, _ Need) (link.Code, error) {
	for {
		l := r.current.Load()
		if l != nil {
			if id := l.next.Add(1) - 1; id < l.end {
				if id == l.first+(l.end-l.first)/2 {
					r.wakeRun()
				}
				return r.perm.Code(r.length, id), nil
			}
		}
		if err := r.advance(ctx, l); err != nil {
			return "", err
		}
	}
}

// Guarantee is Unique.
func (r *Range) Guarantee() Guarantee { return Unique }

// Kind is link.Counted.
func (r *Range) Kind() link.CodeKind { return link.Counted }

// Burned drops what is left of the range at hand if the code came from it. A range
// that was left behind already has nothing to drop. Either way it counts in
// Stats: with this promise every one is worth an alarm, unless it is an alias.
func (r *Range) Burned(code link.Code) {
	r.stats.burned.Add(1)
	id, ok := r.perm.ID(code)
	if l := r.current.Load(); ok && len(code) == r.length && l != nil && l.first <= id && id < l.end {
		l.next.Store(l.end)
		r.wakeRun()
	}
}

// Run keeps a spare range at hand until ctx ends, and returns nil then. Without it
// Next leases for itself, and callers wait for that.
func (r *Range) Run(ctx context.Context) error {
	var failing repeatlog.Condition
	for {
		var retry <-chan time.Time
		if err := r.prefetch(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, ErrExhausted) {
			failing.Log(ctx, time.Now(), r.log, slog.LevelWarn, "code lease failed, retrying", err, slog.String("counter", r.counter))
			retry = time.After(leaseRetry)
		} else {
			failing.LogRecovery(ctx, time.Now(), r.log, "code leases recovered", slog.String("counter", r.counter))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		case <-retry:
		}
	}
}

func (r *Range) wakeRun() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// prefetch leases a spare if there is none and the range at hand is half used.
func (r *Range) prefetch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.unlock()
	l := r.current.Load()
	if r.spare != nil || (l != nil && l.left() > (l.end-l.first)/2) {
		return nil
	}
	spare, err := r.lease(ctx)
	if err != nil {
		return err
	}
	r.spare = spare
	return nil
}

// advance puts a fresh range in the place of the used one, unless another caller
// just did.
func (r *Range) advance(ctx context.Context, used *lease) error {
	if err := r.lock(ctx); err != nil {
		return err
	}
	defer r.unlock()
	if r.current.Load() != used {
		return nil
	}
	fresh := r.spare
	if fresh == nil {
		var err error
		if fresh, err = r.lease(ctx); err != nil {
			return err
		}
		r.stats.inline.Add(1)
	}
	r.spare = nil
	r.current.Store(fresh)
	return nil
}

// lock takes the token of refill. A mutex would not let go of a caller whose time
// is over.
func (r *Range) lock(ctx context.Context) error {
	select {
	case <-r.refill:
		return nil
	case <-ctx.Done():
		return link.Unavailable(fmt.Errorf("wait for a lease of %s: %w", r.counter, context.Cause(ctx)))
	}
}

func (r *Range) unlock() { r.refill <- struct{}{} }

// lease asks the Leaser for the next range and cuts it off at the end of the space.
// The token of refill is held.
func (r *Range) lease(ctx context.Context) (*lease, error) {
	if r.exhausted.Load() {
		return nil, fmt.Errorf("lease from %s: %w", r.counter, ErrExhausted)
	}
	first, err := r.leaser.Lease(ctx, r.counter, r.size)
	if err != nil {
		r.stats.failures.Add(1)
		if !errors.Is(err, link.ErrUnavailable) {
			err = link.Unavailable(err)
		}
		return nil, fmt.Errorf("lease %d from %s: %w", r.size, r.counter, err)
	}
	r.stats.leases.Add(1)
	end := Space(r.length)
	if first >= end {
		r.exhausted.Store(true)
		return nil, fmt.Errorf("lease from %s: %w", r.counter, ErrExhausted)
	}
	l := &lease{first: first, end: min(first+r.size, end)}
	l.next.Store(first)
	return l, nil
}

// left returns how many ids nobody took yet.
func (l *lease) left() uint64 { return l.end - min(l.next.Load(), l.end) }
