package finding

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/background"
	"curt/internal/link"
	"curt/internal/search"
)

const (
	// rankEvery is how often ClickHouse is asked which links were clicked.
	rankEvery = 15 * time.Second
	// rankLate is how late clicks may come where it is not known up to when they are complete.
	rankLate = 5 * time.Minute
	// rankKept is how far back it is known which links were clicked: for less than minutes
	// are kept. Who was away for longer ranks all links.
	rankKept = 2 * 24 * time.Hour
	// rankMost are more links than a ranker lets wait: it ranks all then.
	rankMost = 250_000
)

// clickedStore is what the order of links needs of ClickHouse.
type clickedStore interface {
	Clicks(ctx context.Context, keys []link.Key) ([]uint64, error)
	ClickedSince(ctx context.Context, minute time.Time, most int) ([]link.Key, error)
	ClickedAfter(ctx context.Context, after link.Key, most int) ([]link.Key, error)
	LastProgress() watermarks.Progress
}

// clickhouseCounts tells a ranker which links have clicks in ClickHouse. A generation is a time, in
// Unix seconds, before which all clicks were there when the ranker was told of them.
type clickhouseCounts struct {
	store   clickedStore
	ranking search.Ranking
	now     func() time.Time
	log     *slog.Logger

	mu   sync.Mutex
	told uint64    // guarded by mu: the generation that the ranker was told last; 0 = it has not begun
	from time.Time // guarded by mu: the next question is of clicks from here on
	page int64     // guarded by mu: of the walk over all links
	last link.Key  // guarded by mu: of that page
}

var _ search.Counts = (*clickhouseCounts)(nil)

// complete is up to when all clicks are there.
func (c *clickhouseCounts) complete() time.Time {
	if at := c.store.LastProgress().Complete; !at.IsZero() {
		return at
	}
	return c.now().Add(-rankLate)
}

// Counted implements search.Counts. A ranker asks when it begins, also after something has
// failed: it goes on from what its ranking has noted, where that can be, and else ranks all.
func (c *clickhouseCounts) Counted(ctx context.Context) (uint64, error) {
	noted, err := c.ranking.Generation(ctx)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.from = time.Unix(int64(noted), 0); c.now().Sub(c.from) > rankKept {
		c.from = c.complete()
	}
	c.told = uint64(c.from.Unix())
	return c.told, nil
}

// Count implements search.Counts.
func (c *clickhouseCounts) Count(ctx context.Context, keys []link.Key) ([]uint64, error) {
	return c.store.Clicks(ctx, keys)
}

var errWalk = errors.New("superseded by another walk over all links")

// Clicked implements search.Counts. There is one walk at a time, page by page.
func (c *clickhouseCounts) Clicked(ctx context.Context, after int64, n int) (keys []link.Key, next int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if after == 0 {
		c.page, c.last = 0, link.Key{}
	}
	if after != c.page {
		return nil, 0, errWalk
	}
	if keys, err = c.store.ClickedAfter(ctx, c.last, n); err != nil || len(keys) < n {
		return keys, 0, err
	}
	c.page, c.last = c.page+1, keys[n-1]
	return keys, c.page, nil
}

// run tells a ranker what was clicked, until ctx ends.
func (c *clickhouseCounts) run(ctx context.Context, ranker *search.Ranker) error {
	for away := false; ctx.Err() == nil; {
		err := c.tell(ctx, ranker)
		if err != nil && ctx.Err() == nil && !away {
			c.log.WarnContext(ctx, "reading clicked links from clickhouse failed, keeping the previous ranking", slog.Any("err", err))
		}
		away = err != nil
		background.Sleep(ctx, rankEvery)
	}
	return nil
}

// tell tells the ranker once.
func (c *clickhouseCounts) tell(ctx context.Context, ranker *search.Ranker) error {
	c.mu.Lock()
	told, from := c.told, c.from
	c.mu.Unlock()
	if told == 0 { // the ranker has not begun
		return nil
	}
	through := c.complete() // before the question
	keys, err := c.store.ClickedSince(ctx, from, rankMost)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if !c.from.Equal(from) { // the ranker has begun anew meanwhile
		c.mu.Unlock()
		return nil
	}
	if c.from = through; len(keys) > 0 {
		c.told = max(c.told, uint64(through.Unix()))
		told = c.told
	}
	c.mu.Unlock()
	for _, k := range keys {
		ranker.Clicked(k)
	}
	if len(keys) > 0 {
		ranker.Counted(told)
	}
	return nil
}
