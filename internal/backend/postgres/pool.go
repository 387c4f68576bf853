package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Every wait has an end. A statement is ended by the server first, where it takes the
// parameter, and by us a little later: a server that hangs says nothing.
const (
	connectLimit   = 2 * time.Second
	statementLimit = 5 * time.Second // of batches; what a request waits for has callLimit
	callLimit      = 2 * time.Second
	lockLimit      = 1500 * time.Millisecond
)

// newPool connects to the servers of a URL, of which it takes the one that writes.
//
// Statements are described once by each connection and then sent in one round trip
// without a name. The default of pgx gives them names, which a pooler in transaction mode
// would look for on another server connection: PgBouncer before 1.21 fails two of three
// statements so.
func newPool(ctx context.Context, url string, size int32) (*pgxpool.Pool, error) {
	return new(liveness).newPool(ctx, url, size)
}

func (l *liveness) newPool(ctx context.Context, url string, size int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	config.MaxConns = size
	config.MaxConnLifetime = time.Hour
	config.MaxConnLifetimeJitter = 10 * time.Minute
	config.MaxConnIdleTime = 5 * time.Minute
	config.HealthCheckPeriod = 5 * time.Second
	c := config.ConnConfig
	c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	c.ConnectTimeout = connectLimit
	if len(c.Fallbacks) > 0 && c.ValidateConnect == nil {
		// Several hosts, or TLS and then none, of one: whichever answers must be one that
		// takes writes.
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	for name, value := range map[string]string{
		"application_name": "curt", "statement_timeout": millisText(statementLimit), "lock_timeout": millisText(lockLimit),
		"idle_in_transaction_session_timeout": millisText(statementLimit),
	} {
		if _, set := c.RuntimeParams[name]; !set {
			c.RuntimeParams[name] = value
		}
	}
	pool, err := l.connected(ctx, config)
	if stateOf(err) != stateUnknownStart {
		return pool, err
	}
	// A pooler that does not know the parameters refuses the connection. Our own limits
	// hold without them.
	for _, name := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		delete(c.RuntimeParams, name)
	}
	return l.connected(ctx, config)
}

func millisText(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// connected opens a pool and its first connection.
func (l *liveness) connected(ctx context.Context, config *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := l.open(ctx, config.Copy(), pingLimit)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*connectLimit)
	defer cancel()
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		if state := stateOf(err); state == stateUnknownDatabase || strings.HasPrefix(state, "28") {
			err = fmt.Errorf("%w: %w", ErrUnfit, err) // wrong user, password or name
		}
		return nil, fmt.Errorf("connect: %w", err)
	}
	return pool, nil
}

// resized returns a second pool to the server of a first one, which has found out what it
// takes. It connects when it is used.
func (l *liveness) resized(ctx context.Context, pool *pgxpool.Pool, size int32) (*pgxpool.Pool, error) {
	config := pool.Config()
	config.MaxConns = size
	second, err := l.open(ctx, config, pingLimit)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return second, nil
}

// lazyPool returns a pool to one server, standby or not. It connects when it is used. It
// sends no limits, which a pooler may refuse: whoever uses it has limits of their own.
func lazyPool(url string, size int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	c := config.ConnConfig
	for _, f := range c.Fallbacks { // of one host, too: with TLS and without
		if f.Host != c.Host || f.Port != c.Port {
			return nil, fmt.Errorf("%w: a replica's URL names several hosts; give each a URL of its own", ErrUnfit)
		}
	}
	config.MaxConns, config.MaxConnIdleTime, config.HealthCheckPeriod = size, 5*time.Minute, 5*time.Second
	config.MaxConnLifetime, config.MaxConnLifetimeJitter = time.Hour, 10*time.Minute
	c.DefaultQueryExecMode, c.ConnectTimeout = pgx.QueryExecModeCacheDescribe, connectLimit
	if _, set := c.RuntimeParams["application_name"]; !set {
		c.RuntimeParams["application_name"] = "curt"
	}
	pool, err := new(liveness).open(context.Background(), config, replicaLimit-50*time.Millisecond)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return pool, nil
}

// limited bounds a call that a request waits for.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callLimit)
}

// one runs a query that returns one row at most.
func one(ctx context.Context, q querier, scan func(pgx.Row) error, query string, args ...any) (found bool, err error) {
	err = scan(q.QueryRow(ctx, query, args...))
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// each runs a query and calls scan for every row.
func each(ctx context.Context, q querier, scan func(pgx.Row) error, query string, args ...any) error {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
	Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}
