package server

import (
	"context"
	"path/filepath"
	"time"

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
	ranker  *search.Ranker  // set before Fold runs; nil = there is no order by clicks
	house   *houseCounts    // tells the ranker; nil = Fold does
}

// stored is told by the link store, from its first write on.
func (f *finder) stored(id link.ID) {
	if f.indexer != nil {
		f.indexer.Stored(id)
	}
}

// clicked is told which links were clicked.
func (f *finder) clicked(k link.Key) {
	if f.ranker != nil {
		f.ranker.Clicked(k)
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
	links := b.Links
	b.Links = func(yield func([]clicks.LinkDelta) bool) {
		for chunk := range links { // another walk over them would add them up again
			for i := range chunk {
				c.finder.clicked(chunk[i].Key)
			}
			if !yield(chunk) {
				return
			}
		}
	}
	err := c.RollupStore.Apply(under, b)
	span.End(err)
	if err == nil && c.finder.ranker != nil {
		c.finder.ranker.Counted(b.Generation)
	}
	return err
}

// openSearch opens search.db and puts the indexer and the ranker on it.
func (s *Server) openSearch(ctx context.Context) (err error) {
	f := &s.finder
	f.index, err = sqlite.OpenSearch(ctx, sqlite.SearchConfig{Path: filepath.Join(s.config.Data, "search.db"), Rest: s.rest(), Work: s.undisturbed, Aside: s.questions.answer, Log: s.log})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, f.index.Close)
	f.indexer = search.NewIndexer(search.IndexerConfig{
		Links: s.links, Creates: s.creates, Index: f.index, Redirects: func() uint64 { return s.clicks.capture.Stats().Clicks },
		Work: s.processors.work, Log: s.log,
	})
	var counts search.Counts = s.clicks.rollups
	switch {
	case s.clicks.counted != nil:
		f.house = &houseCounts{store: s.clicks.counted, ranking: f.index, now: time.Now, log: s.log}
		counts = f.house
	case s.clicks.rollups == nil:
		return nil // nobody tells here which links were clicked
	}
	_, work := s.lent()
	f.ranker = search.NewRanker(search.RankerConfig{
		Links: s.links, Counts: counts, Ranking: f.index, Redirects: func() uint64 { return s.clicks.capture.Stats().Clicks },
		Work: work, Rest: s.rest(), Log: s.log,
	})
	return nil
}
