// Package finding opens the search index of this server, with the order of links by clicks.
package finding

import (
	"context"
	"path/filepath"
	"time"

	"curt/internal/backend/sqlite/searchindex"
	"curt/internal/background"
	"curt/internal/compose"
	"curt/internal/compose/pipeline"
	"curt/internal/compose/stores"
	"curt/internal/link"
	"curt/internal/search"
	"curt/internal/telemetry"
)

// Finder is the index, and what keeps it up to date. It is created before the stores and the
// pipeline that tell it of links and clicks, and opened behind them, before any of them runs.
type Finder struct {
	index   *searchindex.Index
	indexer *search.Indexer // nil until Open
	ranker  *search.Ranker  // nil = there is no order by clicks
}

// Stored is called with each new link.
func (f *Finder) Stored(id link.ID) {
	if f.indexer != nil {
		f.indexer.Stored(id)
	}
}

// Clicked implements pipeline.Ranks.
func (f *Finder) Clicked(k link.Key) {
	if f.ranker != nil {
		f.ranker.Clicked(k)
	}
}

// Counted implements pipeline.Ranks.
func (f *Finder) Counted(generation uint64) {
	if f.ranker != nil {
		f.ranker.Counted(generation)
	}
}

// Index returns the index, of a Finder that is open.
func (f *Finder) Index() search.Index { return f.index }

// Ranking returns the order of links by clicks; nil = there is none.
func (f *Finder) Ranking() search.Ranking {
	if f.ranker == nil {
		return nil
	}
	return f.index
}

// Stats returns those of the indexer, of a Finder that is open.
func (f *Finder) Stats() search.IndexerStats { return f.indexer.Stats() }

// Open opens search.db, and the indexer and the ranker on it.
func (f *Finder) Open(ctx context.Context, env *compose.Env, s *stores.Stores, p *pipeline.Pipeline) (_ *compose.Capability, err error) {
	c := &compose.Capability{Name: "search", Metrics: f.count}
	f.index, err = searchindex.Open(ctx, searchindex.Config{Path: filepath.Join(env.Config.Data, "search.db"), Yielder: env.Background.Blocking(), Log: env.Log})
	if err != nil {
		return c, err
	}
	c.OnClose(f.index.Close)
	f.indexer = search.NewIndexer(search.IndexerConfig{
		Links: s.Links, Creates: s.Creates, Index: f.index, Redirects: p.Captured, Yielder: env.Background, Log: env.Log,
	})
	c.Run("search", background.LowPriority(env.Background, f.indexer.Run))
	counts := p.Counts()
	var elsewhere *clickhouseCounts
	if store := p.ClickHouse; store != nil {
		elsewhere = &clickhouseCounts{store: store, ranking: f.index, now: time.Now, log: env.Log}
		counts = elsewhere
	}
	if counts == nil {
		return c, nil // the clicks of links are not known here
	}
	f.ranker = search.NewRanker(search.RankerConfig{
		Links: s.Links, Counts: counts, Ranking: f.index, Redirects: p.Captured, Yielder: env.Background.Sliced(), Log: env.Log,
	})
	c.Run("ranking", background.LowPriority(env.Background.Sliced(), f.ranker.Run))
	if elsewhere != nil {
		c.Run("links clicked", func(ctx context.Context) error { return elsewhere.run(ctx, f.ranker) })
	}
	return c, nil
}

// count registers the counters of the index.
func (f *Finder) count(m *telemetry.Metrics) {
	m.Counter("curt_search_indexed_total", "Links indexed for search, new and changed.",
		func() uint64 { return f.Stats().Indexed })
	m.Gauge("curt_search_complete", "1 once the search index covers the whole store; until then searches may miss links.", func() float64 {
		if f.Stats().Complete {
			return 1
		}
		return 0
	})
}
