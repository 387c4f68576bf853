// Package feed lets followers hear of each entry of a log, in order and at least once, whatever
// happens between the entry and its effect.
//
// A [Log] is read by position. A [Follower] keeps its position where it keeps what it made of the
// entries, so that both move together, and begins anew when entries that it did not read are no
// longer there. [Follower.Step] is all that there is to a follower of one server: its owner calls
// it when it has time. [Fleet] has one server of a fleet do it, and moves the position under the
// fence of its lease. Read this file for the contract; feedtest proves logs.
//
// The package imports joblease, link, repeatlog and the standard library.
package feed

import (
	"context"
	"errors"
	"fmt"

	"curt/internal/link"
)

// Log is an append-only log of one or more partitions, of which the oldest entries may be trimmed.
// P is a position, which only the log can compare; the zero position is before the first entry. It
// is a struct of functions because stores offer more than one log.
type Log[P comparable, E any] struct {
	// Read returns up to n entries behind a position, and the position behind them. Those of a
	// partition come in order, and an entry is visible only when all before it in its partition are.
	// A page without entries may move the position past what the log leaves out. link.ErrConflict:
	// what followed the position is not there; it was trimmed, or the log ends before it. Another error
	// may come with the entries before it, and the position behind them.
	Read func(ctx context.Context, after P, n int) (page []E, next P, err error)
	// Head returns the position behind the newest visible entries.
	Head func(ctx context.Context) (P, error)
	// Short says that Read may return fewer than n entries before the end: only none is the end.
	Short bool
}

// Follower makes something of each entry of a log. Its methods are for one goroutine.
type Follower[P comparable, E any] struct {
	Name string // for errors
	Log  Log[P, E]
	Page int // most entries of one Apply

	// Position returns how far the log was applied. begun = false: Rebuild comes first.
	Position func(ctx context.Context) (at P, begun bool, err error)
	// Apply takes entries and the position behind the last of them, all or nothing. A follower that
	// was killed between the effect and the position gets the same entries again.
	Apply func(ctx context.Context, page []E, to P) error
	// Rebuild is called where nothing was read yet, or entries that were not read are gone: it takes
	// the head of the log as its position first, and then what holds from whatever the entries were
	// about. Until it has returned nil, Step calls nothing else. Nil: of a log that keeps everything.
	Rebuild func(ctx context.Context) error

	lost       bool
	from, past P // behind from the log leaves out what is up to past
}

// Step applies one page. more = false: the end of the log was reached. After an error it may be
// called again, and goes on where Position says.
func (f *Follower[P, E]) Step(ctx context.Context) (more bool, err error) {
	at, begun, err := f.Position(ctx)
	if err != nil {
		return false, fmt.Errorf("%s: position: %w", f.Name, err)
	}
	if f.lost || !begun {
		return f.rebuild(ctx)
	}
	after := at
	if at == f.from {
		after = f.past
	}
	page, next, err := f.Log.Read(ctx, after, f.Page)
	switch {
	case errors.Is(err, link.ErrConflict) && f.Rebuild != nil:
		f.lost = true
		return f.rebuild(ctx)
	case err != nil:
		err = fmt.Errorf("%s: read the log after %v: %w", f.Name, after, err)
		if len(page) > 0 {
			err = errors.Join(err, f.Apply(ctx, page, next))
		}
		return false, err
	case len(page) == 0:
		f.from, f.past = at, next
		return false, nil
	}
	if err := f.Apply(ctx, page, next); err != nil {
		return false, fmt.Errorf("%s: %w", f.Name, err)
	}
	return f.Log.Short || len(page) == f.Page, nil
}

// CatchUp calls Step until the end of the log is reached.
func (f *Follower[P, E]) CatchUp(ctx context.Context) error {
	for {
		if more, err := f.Step(ctx); err != nil || !more {
			return err
		}
	}
}

func (f *Follower[P, E]) rebuild(ctx context.Context) (more bool, err error) {
	if err := f.Rebuild(ctx); err != nil {
		return false, fmt.Errorf("%s: start over: %w", f.Name, err)
	}
	var zero P
	f.lost, f.from, f.past = false, zero, zero
	return true, nil
}
