package clickhouse

import (
	"context"
	"log/slog"
	"time"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/watermarks"
)

// probeEvery is how often Run looks whether the server answers.
const probeEvery = 2 * time.Second

// Run brings the tables up to date, however long the server is away, and from then on looks
// whether it answers, until ctx ends; then it returns nil. The Store may be asked before.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for prepared, told := false, false; ; {
		err := s.look(ctx, prepared)
		away := err != nil
		prepared = !away // an emptied server has no tables
		switch {
		case ctx.Err() != nil:
			return nil
		case away && !told:
			s.Config.Log.WarnContext(ctx, "clickhouse unavailable, statistics cannot be served", slog.Any("err", err))
		case !away && told:
			s.Config.Log.InfoContext(ctx, "clickhouse available again")
		}
		told = away
		s.Found(err)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look asks the server for as little as possible.
func (s *Store) look(ctx context.Context, prepared bool) error {
	if !prepared {
		return s.Prepare(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, clickdb.QueryLimit)
	defer cancel()
	p, err := s.Progress(ctx, time.Now()) // which shows, too, how fresh statistics are
	if err != nil {
		return err
	}
	s.known.Store(&p)
	if s.Config.Position == 0 {
		return nil
	}
	r, err := s.Replica(ctx)
	if err == nil {
		s.state.Store(&r)
	}
	return err
}

// LastReplica is what the database said of itself last; a replica of which nothing is known is filling.
// It does no I/O.
func (s *Store) LastReplica() clickdb.Replica {
	if r := s.state.Load(); r != nil {
		return *r
	}
	return clickdb.Replica{Filling: s.Config.Position > 0}
}

// LastProgress is how far clicks had come when that was asked last. It does no I/O.
func (s *Store) LastProgress() watermarks.Progress {
	if p := s.known.Load(); p != nil {
		return *p
	}
	return watermarks.Progress{}
}
