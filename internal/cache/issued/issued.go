// Package issued tells codes that were never issued from those that perhaps were.
package issued

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"curt/internal/background"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

const (
	// marksEvery is how often strategies are refreshed, and marksLimit how long one is believed.
	marksEvery = time.Second
	marksLimit = time.Minute
	// keysPerPage and fillRetry are how the filter is filled.
	keysPerPage = 1000
	fillRetry   = time.Second
)

// Chosen walks the keys whose codes are nobody's count: link.Chosen.
type Chosen interface {
	Chosen(ctx context.Context, after link.Cursor, n int) ([]link.Key, link.Cursor, error)
}

// Codes tells which codes were certainly never issued, so that somebody who
// tries codes at random costs no query. A code is out of the question only if each strategy
// rules it out and it is not among the chosen ones. Whatever is not known yet, or not known
// any more, makes the answer "perhaps".
type Codes struct {
	// Set once in New.
	strategies []codegen.Strategy
	store      Chosen
	start      time.Time
	others     *filter
	fill       chan struct{} // somebody wants the filter filled

	marked atomic.Int64 // when all strategies were last refreshed, after start; 0 = never

	wanted atomic.Uint64 // how often Refill was called
	filled atomic.Uint64 // the call of Refill that the filter is complete for
}

// New returns Codes that rules out nothing until Run has refreshed the
// strategies and filled the filter.
func New(store Chosen, strategies ...codegen.Strategy) *Codes {
	return &Codes{
		strategies: strategies, store: store,
		start: time.Now(), others: newFilter(), fill: make(chan struct{}, 1),
	}
}

// Never reports whether no link ever had this code, on any domain. It asks nobody.
func (i *Codes) Never(code link.Code) bool {
	wanted := i.wanted.Load()
	if wanted == 0 || i.filled.Load() != wanted {
		return false
	}
	marked := i.marked.Load()
	if marked == 0 || time.Since(i.start)-time.Duration(marked) > marksLimit {
		return false
	}
	return !i.perhaps(code) && !i.others.has(code)
}

// Add notes a code that exists. Codes that a strategy may have issued need no note: most
// changes are of their links.
func (i *Codes) Add(code link.Code) {
	if i.marked.Load() == 0 || !i.perhaps(code) {
		i.others.add(code)
	}
}

// Created notes the code of a new link, which somebody chose.
func (i *Codes) Created(code link.Code) { i.others.add(code) }

// Holds reports whether a link whose code was chosen has perhaps this code, on some domain. It asks nobody. One look-up in 27,000 among 10 million
// such codes says yes by mistake; no is a mistake until Run has filled the
// filter, and about links of other processes until their change was heard.
func (i *Codes) Holds(code link.Code) bool { return i.others.has(code) }

// Len returns how many codes the filter tells apart.
func (i *Codes) Len() int { return i.others.len() }

// perhaps reports whether a strategy may have issued the code.
func (i *Codes) perhaps(code link.Code) bool {
	for _, s := range i.strategies {
		if s.Perhaps(code) {
			return true
		}
	}
	return false
}

// Refill says that codes may have been missed: until the filter was filled again,
// every code is possible.
func (i *Codes) Refill() {
	i.wanted.Add(1)
	select {
	case i.fill <- struct{}{}:
	default:
	}
}

// Run keeps the marks and the filter up to date until ctx ends.
func (i *Codes) Run(ctx context.Context, log *slog.Logger) {
	var marks sync.WaitGroup
	marks.Go(func() { i.keepMarks(ctx, log) })
	i.keepFilled(ctx, log)
	marks.Wait()
}

// keepMarks reads the marks once a second until ctx ends.
func (i *Codes) keepMarks(ctx context.Context, log *slog.Logger) {
	var unread repeatlog.Condition
	for range background.Every(ctx, marksEvery) {
		if err := i.readMarks(ctx); err == nil {
			unread.LogRecovery(ctx, time.Now(), log, "reading leased ids recovered")
		} else if ctx.Err() == nil {
			unread.Log(ctx, time.Now(), log, slog.LevelWarn, "reading leased ids failed, retrying", err)
		}
	}
}

func (i *Codes) readMarks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, marksLimit/2)
	defer cancel()
	at := time.Since(i.start)
	for _, s := range i.strategies {
		if err := s.Refresh(ctx); err != nil {
			return err
		}
	}
	i.marked.Store(max(1, int64(at)))
	return nil
}

// keepFilled fills the filter each time it is asked to, until ctx ends.
func (i *Codes) keepFilled(ctx context.Context, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-i.fill:
		}
		wanted := i.wanted.Load()
		if err := i.walk(ctx, log); err != nil {
			return
		}
		// A later Refill has a larger number, and its own turn of this loop.
		i.filled.Store(wanted)
	}
}

// walk adds all codes of the store. It tries again after an error, and ends with
// one only when ctx does.
func (i *Codes) walk(ctx context.Context, log *slog.Logger) error {
	after := link.Cursor("")
	var unread repeatlog.Condition
	for {
		keys, next, err := i.store.Chosen(ctx, after, keysPerPage)
		if err != nil {
			if ctx.Err() == nil {
				unread.Log(ctx, time.Now(), log, slog.LevelWarn, "reading chosen codes failed, retrying", err)
			}
			if !background.Sleep(ctx, fillRetry) {
				return context.Cause(ctx)
			}
			continue
		}
		for _, k := range keys {
			i.others.add(k.Code)
		}
		if next == "" {
			return nil
		}
		after = next
	}
}
