package search

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"curt/internal/link"
)

// Ranking keeps the order of links by clicks. Links without clicks are not in it. The
// methods may be called by many goroutines at once, but Rank by one.
type Ranking interface {
	// Rank sets the clicks of links and notes the generation of the counts that the
	// ranking includes, all or nothing. Clicks of 0 remove a link.
	Rank(ctx context.Context, ranks []Rank, generation uint64) error

	// Generation returns what the last Rank noted; 0 = nothing yet.
	Generation(ctx context.Context) (uint64, error)

	// Top returns up to n links of a workspace ("" = all), most clicks first and then
	// newest first, from a place on, itself included.
	Top(ctx context.Context, w link.WorkspaceID, from Place, n int) ([]Rank, error)

	// Clicks returns the clicks of links, in order, 0 for those that have none.
	Clicks(ctx context.Context, ids []link.ID) ([]uint64, error)
}

// Rank is a link in a Ranking.
type Rank struct {
	Hit

	Workspace link.WorkspaceID
	Clicks    uint64
}

// Place is a position in the order by clicks.
type Place struct {
	Clicks uint64
	ID     link.ID
}

// Compare is negative when p comes before q: more clicks, or as many and newer.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(q.Clicks, p.Clicks), bytes.Compare(q.ID[:], p.ID[:]))
}

// Counts is where clicks are counted.
type Counts interface {
	// Counted returns how many batches of clicks have been counted.
	Counted(ctx context.Context) (uint64, error)
	// Count returns the clicks of links, in order.
	Count(ctx context.Context, keys []link.Key) ([]uint64, error)
	// Clicked walks up to n links that were ever clicked; next is 0 at the end.
	Clicked(ctx context.Context, after int64, n int) (keys []link.Key, next int64, err error)
}

// Ranker keeps a Ranking up to date with Counts, behind them.
type Ranker struct {
	links   link.Store
	counts  Counts
	ranking Ranking
	log     *slog.Logger
	pace    *pace
	work    func() (done func())

	mu         sync.Mutex
	waiting    map[link.Key]struct{} // guarded by mu
	generation uint64                // guarded by mu: of the newest in waiting
	lost       bool                  // guarded by mu: they were too many, so all are read
}

// maxWaiting bounds the links that wait to be ranked, at some 100 bytes each.
const maxWaiting = 200_000

// rankPage is how many links are ranked at once: about 10 ms.
const rankPage = 256

// NewRanker returns a Ranker that begins with Run. It calls work when it begins to
// compute, and done when it rests; nil = nobody wants to know.
func NewRanker(links link.Store, counts Counts, ranking Ranking, work func() (done func()), log *slog.Logger) *Ranker {
	if work == nil {
		work = func() func() { return func() {} }
	}
	return &Ranker{
		links: links, counts: counts, ranking: ranking, log: cmp.Or(log, slog.New(slog.DiscardHandler)),
		pace: &pace{}, work: work, waiting: map[link.Key]struct{}{},
	}
}

// Counted tells of all links whose clicks changed in a batch that is counted for good.
// It never waits for the ranking.
func (r *Ranker) Counted(keys []link.Key, generation uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.generation = generation
	for _, k := range keys {
		if len(r.waiting) >= maxWaiting {
			r.lost = true
			return
		}
		r.waiting[k] = struct{}{}
	}
}

// Run ranks until ctx ends, then returns nil. What fails is logged and tried again.
func (r *Ranker) Run(ctx context.Context) error {
	for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, time.Minute) {
		if err := r.follow(ctx); ctx.Err() == nil {
			r.log.ErrorContext(ctx, "ranking by clicks stopped, it is tried again", slog.Any("err", err))
		}
		sleep(ctx, wait)
	}
	return nil
}

// follow ranks until something fails. What was taken from waiting is then lost, so it
// begins with all links unless the ranking includes every batch.
func (r *Ranker) follow(ctx context.Context) error {
	counted, err := r.counts.Counted(ctx)
	if err != nil {
		return err
	}
	ranked, err := r.ranking.Generation(ctx)
	if err != nil {
		return err
	}
	if ranked != counted {
		if err := r.all(ctx, counted); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		keys, generation, lost := r.take()
		if lost {
			return fmt.Errorf("more than %d links wait to be ranked", maxWaiting)
		}
		for len(keys) > 0 {
			part := keys[:min(len(keys), rankPage)]
			keys = keys[len(part):]
			var done uint64 // with the last of them
			if len(keys) == 0 {
				done = generation
			}
			if err := r.rank(ctx, part, done); err != nil {
				return err
			}
		}
		sleep(ctx, tick)
	}
	return context.Cause(ctx)
}

// all ranks every link that was ever clicked.
func (r *Ranker) all(ctx context.Context, counted uint64) error {
	for after := int64(0); ; {
		keys, next, err := r.counts.Clicked(ctx, after, rankPage)
		if err != nil {
			return err
		}
		var done uint64
		if next == 0 {
			done = counted
		}
		if err := r.rank(ctx, keys, done); err != nil || next == 0 {
			return err
		}
		after = next
	}
}

// take returns what waits.
func (r *Ranker) take() (keys []link.Key, generation uint64, lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.waiting {
		keys = append(keys, k)
	}
	clear(r.waiting)
	generation, lost, r.lost = r.generation, r.lost, false
	return keys, generation, lost
}

// rank reads the clicks of some links and ranks them; generation 0 leaves the noted
// one as it is, which says that the ranking is not complete.
func (r *Ranker) rank(ctx context.Context, keys []link.Key, generation uint64) error {
	began := time.Now()
	if err := r.write(ctx, keys, generation); err != nil {
		return err
	}
	r.pace.rest(ctx, time.Since(began))
	return nil
}

func (r *Ranker) write(ctx context.Context, keys []link.Key, generation uint64) error {
	defer r.work()()
	clicks, err := r.counts.Count(ctx, keys)
	if err != nil {
		return err
	}
	var ranks []Rank
	for i, k := range keys {
		l, err := r.links.Get(ctx, k)
		switch {
		case err != nil && !errors.Is(err, link.ErrNotFound):
			return err
		case err != nil: // the orphans, or a link of a store that is gone
		case l.Status == link.Deleted:
			ranks = append(ranks, Rank{Hit: Hit{ID: l.ID, Key: k}, Workspace: l.Workspace})
		default:
			ranks = append(ranks, Rank{Hit: Hit{ID: l.ID, Key: k}, Workspace: l.Workspace, Clicks: clicks[i]})
		}
	}
	return r.ranking.Rank(ctx, ranks, generation)
}
