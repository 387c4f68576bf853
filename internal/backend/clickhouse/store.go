package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"curt/internal/analytics"
	"curt/internal/clicks"
)

// Every wait has an end: design §5 wants a statistic within five seconds, or an honest
// error. The server is told to end a question then, and nobody waits longer: a server that
// hangs says nothing.
const (
	connectLimit  = 2 * time.Second
	questionLimit = 5 * time.Second
	insertLimit   = 60 * time.Second // of a block, whose worker waits for nothing else
)

// minVersion is the oldest release that the tests run against.
const minVersion = 26

// ErrUnfit says that the address is wrong, or that the server is none that can be used.
// Asking again does not help, as it may with any other error of Open.
var ErrUnfit = errors.New("the database cannot be used")

// Config says where clicks are kept.
type Config struct {
	URL string // clickhouse://user:password@host:9000/database, with the driver's settings behind "?"

	// KeepLeast is how long the clicks of every workspace are kept one by one, at least:
	// hours that are older cannot be verified. Zero = 30 days.
	KeepLeast time.Duration

	// Senders returns who may hold clicks that are still to come, whether or not anybody has
	// heard of them: whoever begins to take clicks MUST be among them before its first one. Nil =
	// only those count that have promised something.
	Senders func(context.Context) ([]clicks.Sender, error)

	Replicas *Replicas    // nil = one server
	Log      *slog.Logger // nil = none
}

// Store is clicks in ClickHouse. All methods may be called by many goroutines at once.
type Store struct {
	conn     driver.Conn
	config   Config
	progress progress

	asked, failed atomic.Uint64            // questions
	state         atomic.Int32             // how Run found the server last
	known         atomic.Pointer[Progress] // that Run was told last; nil = nothing yet
	lately        atomic.Pointer[settledDays]
}

var _ analytics.Reader = (*Store)(nil)

// New returns a Store, which connects when it is asked; its tables are brought up to date
// by [Store.Prepare] or [Store.Run]. The error is ErrUnfit. The caller closes the Store.
func New(c Config) (*Store, error) {
	if c.KeepLeast == 0 {
		c.KeepLeast = 30 * 24 * time.Hour
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
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
	return &Store{conn: conn, config: c}, nil
}

// Open is New and Prepare.
func Open(ctx context.Context, c Config) (*Store, error) {
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	if err := s.Prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Prepare connects to the server and brings its tables up to date. Several may do so at once.
func (s *Store) Prepare(ctx context.Context) error {
	if err := s.fit(ctx); err != nil {
		return err
	}
	return s.migrate(ctx)
}

// Close closes the connections.
func (s *Store) Close() error {
	if err := s.conn.Close(); err != nil {
		return fmt.Errorf("close the connections to ClickHouse: %w", err)
	}
	return nil
}

// fit looks whether the server is one that the tests know.
func (s *Store) fit(ctx context.Context) error {
	version, err := s.conn.ServerVersion()
	if err != nil {
		return fmt.Errorf("connect to ClickHouse: %w", unavailable(ctx, err))
	}
	if version.Version.Major < minVersion {
		return fmt.Errorf("%w: ClickHouse %s is too old, want %d or newer", ErrUnfit, version.Version, minVersion)
	}
	return nil
}

// ask bounds a question, and has the server bound it.
func ask(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(ctx, questionLimit, fmt.Errorf("%w: no answer within %s", analytics.ErrUnavailable, questionLimit))
	return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{
		"max_execution_time":    int(questionLimit / time.Second),
		"timeout_overflow_mode": "throw",
	})), cancel
}

// question answers one within its bounds and counts it. What is wrong with the question
// itself is the asker's to read, as it is.
func (s *Store) question(ctx context.Context, name string, answer func(context.Context) error) error {
	ctx, cancel := ask(ctx)
	defer cancel()
	s.asked.Add(1)
	err := s.refusal()
	if err == nil {
		err = answer(ctx)
	}
	if err == nil || errors.Is(err, analytics.ErrRange) {
		return err
	}
	err = unavailable(ctx, err)
	if errors.Is(err, analytics.ErrUnavailable) {
		s.failed.Add(1)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// unavailable gives an error its sentinel: whatever the server says or does not say, the
// counts cannot be read. A caller whose context ended gets the cause of that.
func unavailable(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, analytics.ErrUnavailable):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", analytics.ErrUnavailable, err)
}
