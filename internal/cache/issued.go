package cache

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

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

// Issued tells which codes were certainly never issued, so that somebody who
// tries codes at random costs no query. A code is out of the question only if each strategy
// rules it out and it is not among the chosen ones. Whatever is not known yet, or not known
// any more, makes the answer "perhaps".
type Issued struct {
	// Set once in NewIssued.
	strategies []codegen.Strategy
	store      Chosen
	start      time.Time
	others     *filter
	fill       chan struct{} // somebody wants the filter filled

	marked atomic.Int64 // when all strategies were last refreshed, after start; 0 = never

	wanted atomic.Uint64 // how often refill was called
	filled atomic.Uint64 // the call of refill that the filter is complete for
}

// NewIssued returns an Issued that rules out nothing until Tiered.Run has refreshed the
// strategies and filled the filter.
func NewIssued(store Chosen, strategies ...codegen.Strategy) *Issued {
	return &Issued{
		strategies: strategies, store: store,
		start: time.Now(), others: newFilter(), fill: make(chan struct{}, 1),
	}
}

// Never reports whether no link ever had this code, on any domain. It asks nobody.
func (i *Issued) Never(code link.Code) bool {
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
func (i *Issued) Add(code link.Code) {
	if i.marked.Load() == 0 || !i.perhaps(code) {
		i.others.add(code)
	}
}

// Created notes the code of a new link, which somebody chose.
func (i *Issued) Created(code link.Code) { i.others.add(code) }

// Holds reports whether a link whose code was chosen has perhaps this code, on some domain. It asks nobody. One look-up in 27,000 among 10 million
// such codes says yes by mistake; no is a mistake until Tiered.Run has filled the
// filter, and about links of other processes until their change was heard.
func (i *Issued) Holds(code link.Code) bool { return i.others.has(code) }

// perhaps reports whether a strategy may have issued the code.
func (i *Issued) perhaps(code link.Code) bool {
	for _, s := range i.strategies {
		if s.Perhaps(code) {
			return true
		}
	}
	return false
}

// refill says that codes may have been missed: until the filter was filled again,
// every code is possible.
func (i *Issued) refill() {
	i.wanted.Add(1)
	select {
	case i.fill <- struct{}{}:
	default:
	}
}

// keepMarks reads the marks once a second until ctx ends.
func (i *Issued) keepMarks(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(marksEvery)
	defer tick.Stop()
	var unread repeatlog.Condition
	for {
		if err := i.readMarks(ctx); err != nil && ctx.Err() == nil {
			if again, due := unread.Met(time.Now()); due {
				log.WarnContext(ctx, "leased ids cannot be read", slog.Any("err", err), again)
			}
		} else if sum, due := unread.Over(time.Now()); due {
			log.InfoContext(ctx, "leased ids can be read again", sum)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (i *Issued) readMarks(ctx context.Context) error {
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
func (i *Issued) keepFilled(ctx context.Context, log *slog.Logger) {
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
		// A later refill has a larger number, and its own turn of this loop.
		i.filled.Store(wanted)
	}
}

// walk adds all codes of the store. It tries again after an error, and ends with
// one only when ctx does.
func (i *Issued) walk(ctx context.Context, log *slog.Logger) error {
	after := link.Cursor("")
	var unread repeatlog.Condition
	for {
		keys, next, err := i.store.Chosen(ctx, after, keysPerPage)
		if err != nil {
			if ctx.Err() == nil {
				if again, due := unread.Met(time.Now()); due {
					log.WarnContext(ctx, "chosen codes cannot be read", slog.Any("err", err), again)
				}
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(fillRetry):
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
