package clickhouse

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"curt/internal/analytics"
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
	for prepared, told, lacks := false, false, false; ; {
		err := s.look(ctx, prepared)
		away := err != nil
		prepared = !away // an emptied server has no tables
		s.Found(err)
		switch {
		case ctx.Err() != nil:
			return nil
		case away && !told:
			s.Config.Log.WarnContext(ctx, s.named("clickhouse unavailable, statistics cannot be served", "replica of clickhouse unavailable"), slog.Any("err", s.Healthy()))
		case !away && told:
			s.Config.Log.InfoContext(ctx, s.named("clickhouse available again", "replica of clickhouse available again"))
		}
		if lacking := s.Lacking(s.LastReplica()); !away && lacks != (lacking != nil) {
			if lacks = lacking != nil; lacks {
				s.Config.Log.WarnContext(ctx, "clickhouse lacks clicks, and is not queried", slog.Any("err", lacking))
			} else {
				s.Config.Log.InfoContext(ctx, "clickhouse has all clicks, and is queried")
			}
		}
		told = away
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// named is a message about the only server, or about one of several.
func (s *Store) named(only, several string) string {
	if s.Config.Position == 0 {
		return only
	}
	return several
}

// look asks the server for as little as possible.
func (s *Store) look(ctx context.Context, prepared bool) error {
	if !prepared {
		if err := s.Prepare(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, clickdb.QueryLimit)
	defer cancel()
	p, err := s.Progress(ctx, time.Now()) // which shows, too, how fresh statistics are
	if err != nil {
		return err
	}
	s.known.Store(&p)
	if was := s.state.Load(); prepared && s.Config.Position == 0 && was != nil && !was.Filling {
		return nil // one that is alone and complete stays so
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

// Able returns nil while a replica can be queried. It does no I/O.
func (s *Store) Able() error {
	if err := s.Healthy(); err != nil {
		return err
	}
	return s.Lacking(s.LastReplica())
}

// Lacking returns an error that wraps [analytics.ErrIncomplete] if a database in a state lacks clicks.
func (s *Store) Lacking(r clickdb.Replica) error {
	if !r.Filling {
		return nil
	}
	return &lackingError{address: s.Address(), days: r.Days, alone: s.Config.Position == 0}
}

// lackingError says that a database is not queried yet.
type lackingError struct {
	address string
	days    uint64 // that are complete
	alone   bool
}

func (e *lackingError) Error() string { return e.PublicMessage() }

// PublicMessage is what an operator may read.
func (e *lackingError) PublicMessage() string {
	if e.alone {
		return e.address + ": lacks clicks that another replica has; name that one first in CURT_ANALYTICS, and this one behind it"
	}
	return fmt.Sprintf("%s: is being filled from another replica, %d days so far", e.address, e.days)
}

// Unwrap implements errors.Is.
func (*lackingError) Unwrap() error { return analytics.ErrIncomplete }

// alone returns an error unless the only server has all clicks. Before the first query it asks it.
func (s *Store) alone(ctx context.Context) error {
	if s.state.Load() == nil {
		err := s.Query(ctx, "state of the replica", func(ctx context.Context) error {
			r, err := s.Replica(ctx)
			if err == nil {
				s.state.CompareAndSwap(nil, &r)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.Lacking(s.LastReplica())
}
