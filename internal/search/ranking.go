package search

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"curt/internal/background"
	"curt/internal/link"
	"curt/internal/repeatlog"
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
	Top(ctx context.Context, w link.WorkspaceID, from RankPosition, n int) ([]Rank, error)

	// Clicks returns the clicks of links, in order, 0 for those that have none.
	Clicks(ctx context.Context, ids []link.ID) ([]uint64, error)
}

// Rank is a link in a Ranking.
type Rank struct {
	Hit

	Workspace link.WorkspaceID
	Clicks    uint64
}

// RankPosition is a position in the order by clicks.
type RankPosition struct {
	Clicks uint64
	ID     link.ID
}

// Compare is negative when p comes before q: more clicks, or as many and newer.
func (p RankPosition) Compare(q RankPosition) int {
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

// RankerConfig is what NewRanker needs. Nil functions and a nil Log are no-ops.
type RankerConfig struct {
	Links   link.Store
	Counts  Counts
	Ranking Ranking

	Redirects func() uint64      // a counter: in a burst the ranker waits
	Yielder   background.Yielder // boosts batches; Counted yields
	Log       *slog.Logger
}

// Ranker keeps a Ranking up to date with Counts, behind them: by a second or so, and in
// a burst of redirects by half a minute. What was clicked many times meanwhile is ranked
// once.
type Ranker struct {
	cfg  RankerConfig
	pace background.Pace

	stopped repeatlog.Condition

	mu         sync.Mutex
	coming     []link.Key            // guarded by mu: of a batch that is not counted yet
	waiting    map[link.Key]struct{} // guarded by mu
	generation uint64                // guarded by mu: of the newest in waiting
	lost       bool                  // guarded by mu: they were too many, so all are read
}

// maxWaiting bounds the links that wait to be ranked, at some 100 bytes each. With half
// as many a burst is waited for no longer.
const maxWaiting = 200_000

// rankPage is how many links are ranked at once: about 10 ms.
const rankPage = 256

// NewRanker returns a Ranker that begins with Run.
func NewRanker(cfg RankerConfig) *Ranker {
	if cfg.Redirects == nil {
		cfg.Redirects = func() uint64 { return 0 }
	}
	cfg.Yielder = background.Or(cfg.Yielder)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Ranker{cfg: cfg, waiting: map[link.Key]struct{}{}}
}

// Clicked tells of a link of a batch that is about to be counted. It never waits for
// the ranking; to tell of too many does no harm.
func (r *Ranker) Clicked(k link.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.coming) <= maxWaiting {
		r.coming = append(r.coming, k)
	}
}

// Counted tells that the batch of all links that Clicked told of is counted for good.
func (r *Ranker) Counted(generation uint64) {
	for r.await(generation) {
		r.cfg.Yielder.Yield()
	}
}

// await moves a part of those that were coming to those that wait, and with the last of them
// notes the generation. It returns false when that was all.
func (r *Ranker) await(generation uint64) (more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = r.lost || len(r.coming) > maxWaiting
	part := r.coming[max(0, len(r.coming)-rankPage):]
	for _, k := range part {
		r.waiting[k] = struct{}{}
	}
	clear(part)
	r.coming = r.coming[:len(r.coming)-len(part)]
	if len(r.coming) > 0 {
		return true
	}
	r.generation = generation
	r.lost = r.lost || len(r.waiting) > maxWaiting
	if r.lost {
		clear(r.waiting)
	}
	return false
}

// crowd reports whether a burst should be waited for no longer.
func (r *Ranker) crowd() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost || len(r.waiting) > maxWaiting/2
}

// Run ranks until ctx ends, then returns nil. What fails is logged and tried again.
func (r *Ranker) Run(ctx context.Context) error {
	for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, time.Minute) {
		if err := r.follow(ctx); ctx.Err() == nil {
			r.stopped.Log(ctx, time.Now(), r.cfg.Log, slog.LevelError, "ranking by clicks failed, retrying", err)
		}
		background.Sleep(ctx, wait)
	}
	return nil
}

// follow ranks until something fails. What was taken from waiting is then lost, so it
// begins with all links unless the ranking includes every batch.
func (r *Ranker) follow(ctx context.Context) error {
	counted, err := r.cfg.Counts.Counted(ctx)
	if err != nil {
		return err
	}
	ranked, err := r.cfg.Ranking.Generation(ctx)
	if err != nil {
		return err
	}
	if ranked != counted {
		if err := r.all(ctx, counted); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		r.pace.Wait(ctx, r.cfg.Redirects, r.crowd)
		if err := r.some(ctx); err != nil {
			return err
		}
		r.stopped.LogRecovery(ctx, time.Now(), r.cfg.Log, "ranking by clicks recovered")
		background.Sleep(ctx, background.Tick)
	}
	return context.Cause(ctx)
}

// some ranks as many links as wait now: those that come meanwhile wait for calm again.
func (r *Ranker) some(ctx context.Context) error {
	r.mu.Lock()
	left := len(r.waiting)
	r.mu.Unlock()
	for ctx.Err() == nil {
		keys, done, lost := r.take(min(left, rankPage))
		if lost {
			return fmt.Errorf("more than %d links waiting to be ranked", maxWaiting)
		}
		if len(keys) == 0 {
			return nil
		}
		if err := r.rank(ctx, keys, done); err != nil {
			return err
		}
		left -= len(keys)
	}
	return context.Cause(ctx)
}

// all ranks every link that was ever clicked.
func (r *Ranker) all(ctx context.Context, counted uint64) error {
	for after := int64(0); ; {
		keys, next, err := r.cfg.Counts.Clicked(ctx, after, rankPage)
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

// take returns up to n of those that wait, and the generation that all is ranked of with them; 0 =
// more wait.
func (r *Ranker) take(n int) (keys []link.Key, generation uint64, lost bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.waiting {
		if len(keys) == n {
			break
		}
		keys = append(keys, k)
		delete(r.waiting, k)
	}
	if len(r.waiting) == 0 {
		generation = r.generation
	}
	lost, r.lost = r.lost, false
	return keys, generation, lost
}

// rank reads the clicks of some links and ranks them; generation 0 leaves the noted
// one as it is, which says that the ranking is not complete.
func (r *Ranker) rank(ctx context.Context, keys []link.Key, generation uint64) error {
	began := time.Now()
	if err := r.write(ctx, keys, generation); err != nil {
		return err
	}
	r.pace.Pause(ctx, time.Since(began))
	return nil
}

func (r *Ranker) write(ctx context.Context, keys []link.Key, generation uint64) error {
	defer r.cfg.Yielder.Boost()()
	clicks, err := r.cfg.Counts.Count(ctx, keys)
	if err != nil {
		return err
	}
	links, err := link.GetMany(ctx, r.cfg.Links, keys)
	if err != nil {
		return err
	}
	var ranks []Rank
	for i := range links {
		switch l := &links[i]; {
		case l.ID.IsZero(): // the orphans, or a link of a store that is gone
		case l.Status == link.Deleted:
			ranks = append(ranks, Rank{Hit: Hit{ID: l.ID, Key: l.Key}, Workspace: l.Workspace})
		default:
			ranks = append(ranks, Rank{Hit: Hit{ID: l.ID, Key: l.Key}, Workspace: l.Workspace, Clicks: clicks[i]})
		}
	}
	return r.cfg.Ranking.Rank(ctx, ranks, generation)
}
