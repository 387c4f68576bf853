package server

import (
	"context"
	"path/filepath"

	"curt/internal/backend/sqlite"
	"curt/internal/link"
	"curt/internal/search"
)

// finder is the search index and what keeps it up to date.
type finder struct {
	index   *sqlite.Search
	indexer *search.Indexer // nil until there is one
}

// stored is told by the link store, from its first write on.
func (f *finder) stored(id link.ID) {
	if f.indexer != nil {
		f.indexer.Stored(id)
	}
}

// openSearch opens search.db and puts the indexer on it.
func (s *Server) openSearch(ctx context.Context) (err error) {
	f := &s.finder
	f.index, err = sqlite.OpenSearch(ctx, sqlite.SearchConfig{Path: filepath.Join(s.config.Data, "search.db"), Log: s.log})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, f.index.Close)
	f.indexer = search.NewIndexer(search.IndexerConfig{
		Links: s.links, Index: f.index, Redirects: func() uint64 { return s.clicks.capture.Stats().Clicks }, Log: s.log,
	})
	return nil
}
