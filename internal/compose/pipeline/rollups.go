package pipeline

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	pgcounts "curt/internal/backend/postgres/counts"
	"curt/internal/backend/sqlite/counts"
	"curt/internal/clicks/rollup"
	"curt/internal/compose"
	"curt/internal/datafolder"
	"curt/internal/search"
	"curt/internal/settings"
)

// rollups is what the server needs of a store of counted clicks.
type rollups interface {
	rollup.Store
	search.Counts

	// Run looks after the store until ctx ends.
	Run(ctx context.Context) error
	Close() error
}

// openRollups opens the store of counted clicks that is set. shared is what others that
// write to it have counted; nil = there are none.
func openRollups(ctx context.Context, env *compose.Env) (store rollups, shared func(time.Time) time.Time, err error) {
	path := filepath.Join(env.Config.Data, "clicks.db")
	if env.Config.Analytics == "" {
		store, err = counts.Open(ctx, counts.Config{Path: path, Yielder: env.Background.Blocking()})
		return store, nil, err
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, datafolder.OwnCounts(env.Config)
	}
	name, err := datafolder.Instance(env.Config.Data)
	if err != nil {
		return nil, nil, err
	}
	cfg := pgcounts.Config{
		URL: env.Config.Analytics, Instance: name, Log: env.Log,
		Lazy: !env.Roles.API, // it starts and serves without statistics, which are not read here
	}
	r, err := pgcounts.Open(ctx, cfg)
	if err != nil {
		return nil, nil, settings.WrongDatabase("CURT_ANALYTICS", env.Config.Analytics, err)
	}
	return r, r.Complete, nil
}

// answering is a store that reports its state without I/O.
type answering interface{ Healthy() error }
