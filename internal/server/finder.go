package server

import (
	"context"
	"path/filepath"

	"curt/internal/backend/sqlite"
	"curt/internal/clicks"
	"curt/internal/link"
	"curt/internal/search"
	"curt/internal/telemetry"
)

// finder is the search index and what keeps it up to date.
type finder struct {
	index   *sqlite.Search
	indexer *search.Indexer // nil until there is one
	ranker  *search.Ranker  // set before Fold runs
}

// stored is told by the link store, from its first write on.
func (f *finder) stored(id link.ID) {
	if f.indexer != nil {
		f.indexer.Stored(id)
	}
}

// counted is what Fold writes to: the roll-ups, and word of which links they are of.
type counted struct {
	clicks.RollupStore

	finder *finder
	tracer *telemetry.Tracer
}

// Apply implements clicks.RollupStore.
func (c counted) Apply(ctx context.Context, b clicks.Batch) error {
	under, span := c.tracer.Start(ctx, "fold batch")
	err := c.RollupStore.Apply(under, b)
	span.End(err)
	if err != nil {
		return err
	}
	var keys []link.Key
	for chunk := range b.Links {
		for i := range chunk {
			keys = append(keys, chunk[i].Key)
		}
	}
	c.finder.ranker.Counted(keys, b.Generation)
	return nil
}

// openSearch opens search.db and puts the indexer and the ranker on it.
func (s *Server) openSearch(ctx context.Context) (err error) {
	f := &s.finder
	f.index, err = sqlite.OpenSearch(ctx, sqlite.SearchConfig{Path: filepath.Join(s.config.Data, "search.db"), Log: s.log})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, f.index.Close)
	f.indexer = search.NewIndexer(search.IndexerConfig{
		Links: s.links, Index: f.index, Redirects: func() uint64 { return s.clicks.capture.Stats().Clicks },
		Work: s.processors.work, Log: s.log,
	})
	f.ranker = search.NewRanker(s.links, s.clicks.rollups, f.index, s.processors.work, s.log)
	return nil
}
