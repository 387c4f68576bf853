package codegentest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"curt/internal/codegen"
	"curt/internal/link"
)

// Leaser is a codegen.Leaser in memory, the model of every other.
type Leaser struct {
	mu    sync.Mutex
	marks map[string]uint64
}

// NewLeaser returns a Leaser whose counters all stand at 0.
func NewLeaser() *Leaser { return &Leaser{marks: make(map[string]uint64)} }

// Lease implements codegen.Leaser.
func (l *Leaser) Lease(ctx context.Context, counter string, n uint64) (first uint64, err error) {
	err = l.do(ctx, func() { first = l.marks[counter]; l.marks[counter] += n })
	return first, err
}

// Leased implements codegen.Leaser.
func (l *Leaser) Leased(ctx context.Context, counter string) (mark uint64, err error) {
	err = l.do(ctx, func() { mark = l.marks[counter] })
	return mark, err
}

// Skip implements codegen.Leaser.
func (l *Leaser) Skip(ctx context.Context, counter string, n uint64) error {
	return l.do(ctx, func() { l.marks[counter] += n })
}

// Raise implements codegen.Leaser.
func (l *Leaser) Raise(ctx context.Context, counter string, from, to uint64) (err error) {
	if to <= from || to > math.MaxInt64 {
		return fmt.Errorf("raise %s: %w", counter, link.ErrInvalid)
	}
	done := l.do(ctx, func() {
		if l.marks[counter] != from {
			err = fmt.Errorf("raise %s: %w", counter, link.ErrConflict)
			return
		}
		l.marks[counter] = to
	})
	return errors.Join(err, done)
}

func (l *Leaser) do(ctx context.Context, f func()) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", link.ErrUnavailable, context.Cause(ctx))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	return nil
}

// Op is a method of a Leaser.
type Op string

// The methods that WithFaults asks about.
const (
	OpLease  Op = "lease"
	OpLeased Op = "leased"
	OpSkip   Op = "skip"
	OpRaise  Op = "raise"
)

// WithFaults returns l with f asked before every call. With a nil error the call
// goes through; else the caller gets the error, and apply says whether the call
// was made all the same: an acknowledgement that was lost.
func WithFaults(l codegen.Leaser, f func(ctx context.Context, op Op) (apply bool, err error)) codegen.Leaser {
	return faulty{inner: l, fault: f}
}

type faulty struct {
	inner codegen.Leaser
	fault func(ctx context.Context, op Op) (apply bool, err error)
}

func (f faulty) Lease(ctx context.Context, counter string, n uint64) (uint64, error) {
	return ask(ctx, f, OpLease, func() (uint64, error) { return f.inner.Lease(ctx, counter, n) })
}

func (f faulty) Leased(ctx context.Context, counter string) (uint64, error) {
	return ask(ctx, f, OpLeased, func() (uint64, error) { return f.inner.Leased(ctx, counter) })
}

func (f faulty) Skip(ctx context.Context, counter string, n uint64) error {
	_, err := ask(ctx, f, OpSkip, func() (uint64, error) { return 0, f.inner.Skip(ctx, counter, n) })
	return err
}

func (f faulty) Raise(ctx context.Context, counter string, from, to uint64) error {
	_, err := ask(ctx, f, OpRaise, func() (uint64, error) { return 0, f.inner.Raise(ctx, counter, from, to) })
	return err
}

func ask(ctx context.Context, f faulty, op Op, call func() (uint64, error)) (uint64, error) {
	apply, fault := f.fault(ctx, op)
	if fault == nil {
		return call()
	}
	if apply {
		if _, err := call(); err != nil {
			return 0, err
		}
	}
	return 0, fault
}
