// Package clickhouse keeps clicks in ClickHouse 26 or newer, one by one and added up.
//
// Statistics are read from what is added up. The packages below have an idea each: clickdb the
// connection, the tables and the blocks; watermarks the time up to which clicks are complete;
// finalize the values of days that are over; reconcile the comparison of sums with clicks;
// statistics the queries.
package clickhouse

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/finalize"
	"curt/internal/backend/clickhouse/reconcile"
	"curt/internal/backend/clickhouse/statistics"
	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/clicks/ship"
)

// Config says where clicks are kept.
type Config struct {
	URL string // clickhouse://user:password@host:9000/database, with the driver's settings behind "?"

	// MinRetention is how long the clicks of every workspace are kept one by one, at least:
	// hours that are older cannot be verified. Zero = 30 days.
	MinRetention time.Duration

	Position int            // among several with the same clicks, from 1 on; 0 = it is the only one
	Peers    *clickdb.Peers // of all of them; nil = they are not compared

	// Senders are those of [watermarks.New].
	Senders func(context.Context) ([]ship.Sender, error)

	Log *slog.Logger // nil = none
}

// DB is the configuration of the connection.
func (c Config) DB() clickdb.Config {
	return clickdb.Config{URL: c.URL, MinRetention: c.MinRetention, Position: c.Position, Peers: c.Peers, Log: c.Log}
}

// Store is clicks in ClickHouse. All methods may be called by many goroutines at once.
type Store struct {
	*clickdb.DB
	*watermarks.Table
	*finalize.Days
	*reconcile.Tables
	*statistics.Reader

	known atomic.Pointer[watermarks.Progress] // that Run read last; nil = nothing yet
	state atomic.Pointer[clickdb.Replica]     // likewise
}

// New returns a Store, which connects with its first query; its tables are brought up to date
// by [clickdb.DB.Prepare] or [Store.Run]. The error is clickdb.ErrUnfit. The caller closes the Store.
func New(c Config) (*Store, error) {
	db, err := clickdb.New(c.DB())
	if err != nil {
		return nil, err
	}
	marks, days := watermarks.New(db, c.Senders), finalize.New(db)
	return &Store{DB: db, Table: marks, Days: days, Tables: reconcile.New(db, days), Reader: statistics.New(db, days, marks)}, nil
}

// Open is New and Prepare.
func Open(ctx context.Context, c Config) (*Store, error) {
	return open(c, func(s *Store) error { return s.Prepare(ctx) })
}

// OpenAsIs is Open for who migrates nothing: the error wraps clickdb.ErrNotMigrated unless the tables are those of this
// release.
func OpenAsIs(ctx context.Context, c Config) (*Store, error) {
	return open(c, func(s *Store) error { return clickdb.Find(ctx, s.DB) })
}

func open(c Config, begin func(*Store) error) (*Store, error) {
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	if err := begin(s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
