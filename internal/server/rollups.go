package server

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"curt/internal/backend/postgres"
	"curt/internal/backend/sqlite"
	"curt/internal/clicks"
	"curt/internal/config"
	"curt/internal/search"
)

// rollups is what the server needs of a store of counted clicks.
type rollups interface {
	clicks.RollupStore
	search.Counts

	// Run looks after the store until ctx ends.
	Run(ctx context.Context) error
	Close() error
}

// openRollups opens the store of counted clicks that is set. shared is what others that
// write to it have counted; nil = nobody else does.
func (s *Server) openRollups(ctx context.Context) (store rollups, shared func(time.Time) time.Time, err error) {
	path := filepath.Join(s.config.Data, "clicks.db")
	if s.config.Analytics == "" {
		store, err = sqlite.OpenRollups(ctx, sqlite.RollupsConfig{Path: path, Rest: s.rest(), Work: s.undisturbed, Aside: s.questions.answer})
		return store, nil, err
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, ownCounts(s.config)
	}
	name, err := instance(s.config.Data)
	if err != nil {
		return nil, nil, err
	}
	cfg := postgres.RollupsConfig{URL: s.config.Analytics, Instance: name, Log: s.log}
	if !s.roles.programs { // nobody asks for them here
		return &lateRollups{log: s.log, open: func(ctx context.Context) (rollups, error) {
			return postgres.OpenRollups(ctx, cfg)
		}}, func(time.Time) time.Time { return time.Time{} }, nil
	}
	r, err := postgres.OpenRollups(ctx, cfg)
	if err != nil {
		return nil, nil, wrongDatabase("CURT_ANALYTICS", s.config.Analytics, err)
	}
	return r, r.Complete, nil
}

// ownCounts refuses a folder with statistics of its own.
func ownCounts(cfg config.Config) error {
	return &config.Error{
		Setting: "CURT_DATA", Value: cfg.Data,
		Want: "CURT_ANALYTICS names a database, and this folder has statistics of its own in clicks.db, which nobody would show; " +
			"move that file away: clicks that the click log still holds are counted again in the database",
	}
}
