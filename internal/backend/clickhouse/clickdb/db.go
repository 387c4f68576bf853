// Package clickdb is the connection to ClickHouse 26 or newer, the tables, and the blocks of clicks
// that are inserted.
//
// Clicks come in blocks, each under a token of its own: a block that is inserted again
// changes nothing, neither in the clicks nor in anything that is added up from them. That
// rests on a window of tokens at every table.
//
// Read migrations/00001_clicks.sql for the shape of the data, schema.go for how clicks are
// counted, insert.go for the guarantees of a block.
package clickdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"curt/internal/analytics"
)

// Every wait has an end: design §5 wants a statistic within five seconds, or an honest
// error. The server is told to end a question then, and nobody waits longer: a server that
// hangs says nothing.
const (
	connectLimit = 2 * time.Second
	QueryLimit   = 5 * time.Second
	insertLimit  = 60 * time.Second // of a block, whose worker waits for nothing else
)

// minVersion is the oldest release that the tests run against.
const minVersion = 26

// ErrUnfit says that the address is wrong, or that the server is none that can be used.
// Asking again does not help, as it may with any other error of Open.
var ErrUnfit = errors.New("unusable database")

// Config says where clicks are kept.
type Config struct {
	URL string // clickhouse://user:password@host:9000/database, with the driver's settings behind "?"

	// MinRetention is how long the clicks of every workspace are kept one by one, at least:
	// hours that are older cannot be verified. Zero = 30 days.
	MinRetention time.Duration

	Position int    // among several with the same clicks, from 1 on; 0 = it is the only one
	Peers    *Peers // of all of them; nil = they are not compared

	Log *slog.Logger // nil = none
}

// DB is the connection. All methods may be called by many goroutines at once.
type DB struct {
	Conn   driver.Conn
	Config Config

	address, user string

	asked, failed atomic.Uint64         // queries
	found         atomic.Pointer[found] // how the server was found last; nil = nobody has looked
}

// New returns a DB, which connects with its first query; its tables are brought up to date
// by [DB.Prepare]. The error is ErrUnfit. The caller closes the DB.
func New(c Config) (*DB, error) {
	c.MinRetention = cmp.Or(c.MinRetention, 30*24*time.Hour)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	options, err := clickhouse.ParseDSN(c.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	options.DialTimeout = connectLimit
	options.MaxOpenConns, options.MaxIdleConns = 16, 16
	options.ConnMaxLifetime = time.Hour
	if options.Compression == nil {
		options.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
	}
	conn, err := clickhouse.Open(options)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	return &DB{Conn: conn, Config: c, address: addressOf(options), user: options.Auth.Username}, nil
}

// Prepare connects to the server and brings its tables up to date. Several may do so at once.
func (d *DB) Prepare(ctx context.Context) error {
	if err := d.Fit(ctx); err != nil {
		return err
	}
	if d.Config.Position > 0 {
		if err := d.claim(ctx); err != nil {
			return err
		}
	}
	return d.migrate(ctx)
}

// ErrNotMigrated says that a database does not have the tables of this release yet.
var ErrNotMigrated = errors.New("the tables are not migrated to those of this release: run curt migrate")

// Find is DB.Prepare for who migrates nothing: the error wraps ErrNotMigrated unless the tables are those of this release.
func Find(ctx context.Context, d *DB) error {
	if err := d.Fit(ctx); err != nil {
		return err
	}
	id, fed, err := d.identity(ctx)
	if err == nil {
		err = d.ordered(id, fed)
	}
	if err != nil {
		return err
	}
	if done, err := migrated(ctx, d); err != nil || !done {
		return fmt.Errorf("%s: %w", d.address, cmp.Or(err, ErrNotMigrated))
	}
	return nil
}

// Close closes the connections.
func (d *DB) Close() error {
	if err := d.Conn.Close(); err != nil {
		return fmt.Errorf("close the connections to ClickHouse: %w", err)
	}
	return nil
}

// Fit looks whether the server is one that the tests know.
func (d *DB) Fit(ctx context.Context) error {
	version, err := d.Conn.ServerVersion()
	if err != nil {
		return fmt.Errorf("connect to ClickHouse: %w", Unavailable(ctx, err))
	}
	if version.Version.Major < minVersion {
		return fmt.Errorf("%w: ClickHouse %s is too old, expected %d or newer", ErrUnfit, version.Version, minVersion)
	}
	return nil
}

// Bound bounds a query, and has the server bound it.
func Bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(ctx, QueryLimit, fmt.Errorf("%w: no response within %s", analytics.ErrUnavailable, QueryLimit))
	return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{
		"max_execution_time":    int(QueryLimit / time.Second),
		"timeout_overflow_mode": "throw",
	})), cancel
}

// Query runs a query within its bounds and counts it. An error of its arguments is returned as it is.
func (d *DB) Query(ctx context.Context, name string, answer func(context.Context) error) error {
	ctx, cancel := Bound(ctx)
	defer cancel()
	d.asked.Add(1)
	err := d.refusal()
	if err == nil {
		err = answer(ctx)
	}
	if err == nil || errors.Is(err, analytics.ErrRange) {
		return err
	}
	err = Unavailable(ctx, err)
	if errors.Is(err, analytics.ErrUnavailable) {
		d.failed.Add(1)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Unavailable gives an error its sentinel: whatever the server says or does not say, the
// counts cannot be read. A caller whose context ended gets the cause of that.
func Unavailable(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, analytics.ErrUnavailable):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", analytics.ErrUnavailable, err)
}

// Stats are counters since the start.
type Stats struct {
	Questions uint64
	Failures  uint64 // of those, not answered, or not in time
}

// Stats returns the counters.
func (d *DB) Stats() Stats { return Stats{d.asked.Load(), d.failed.Load()} }
