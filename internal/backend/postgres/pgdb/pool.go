package pgdb

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Every wait has an end. A statement is ended by the server first, where it takes the
// parameter, and by us a little later: a server that hangs says nothing.
const (
	ConnectLimit   = 2 * time.Second
	StatementLimit = 5 * time.Second // of batches; what a request waits for has callLimit
	callLimit      = 2 * time.Second
	lockLimit      = 1500 * time.Millisecond
)

// NewPool connects to the servers of a URL, of which it takes the one that writes.
//
// Statements are described once by each connection and then sent in one round trip
// without a name. The default of pgx gives them names, which a pooler in transaction mode
// would look for on another server connection: PgBouncer before 1.21 fails two of three
// statements so.
func NewPool(ctx context.Context, url string, size int32) (*pgxpool.Pool, error) {
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
	c.ConnectTimeout = ConnectLimit
	if len(c.Fallbacks) > 0 && c.ValidateConnect == nil {
		// Several hosts, or TLS and then none, of one: whichever answers must be one that
		// takes writes.
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	for name, value := range map[string]string{
		"application_name": applicationName(), "statement_timeout": millisText(StatementLimit), "lock_timeout": millisText(lockLimit),
		"idle_in_transaction_session_timeout": millisText(StatementLimit),
	} {
		if _, set := c.RuntimeParams[name]; !set {
			c.RuntimeParams[name] = value
		}
	}
	pool, err := l.connected(ctx, config)
	if StateOf(err) != stateUnknownStart {
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
	ctx, cancel := context.WithTimeout(ctx, 2*ConnectLimit)
	defer cancel()
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		if state := StateOf(err); state == stateUnknownDatabase || strings.HasPrefix(state, "28") {
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

const (
	// replicaLimit bounds how long a visitor waits for a replica before the primary is asked.
	ReplicaLimit = 250 * time.Millisecond
)

// NewLazyPool returns a pool to one server, standby or not. It connects when it is used. It
// sends no limits, which a pooler may refuse: whoever uses it has limits of their own.
func NewLazyPool(url string, size int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	c := config.ConnConfig
	for _, f := range c.Fallbacks { // of one host, too: with TLS and without
		if f.Host != c.Host || f.Port != c.Port {
			return nil, fmt.Errorf("%w: a replica URL has several hosts; use one URL per replica", ErrUnfit)
		}
	}
	config.MaxConns, config.MaxConnIdleTime, config.HealthCheckPeriod = size, 5*time.Minute, 5*time.Second
	config.MaxConnLifetime, config.MaxConnLifetimeJitter = time.Hour, 10*time.Minute
	c.DefaultQueryExecMode, c.ConnectTimeout = pgx.QueryExecModeCacheDescribe, ConnectLimit
	if _, set := c.RuntimeParams["application_name"]; !set {
		c.RuntimeParams["application_name"] = applicationName()
	}
	pool, err := new(liveness).open(context.Background(), config, ReplicaLimit-50*time.Millisecond)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return pool, nil
}

// Limited bounds a call that a request waits for.
func Limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callLimit)
}

// minVersion is the oldest server that the tests run against.
const minVersion = 150000

// ErrUnfit says that the address is wrong, or that the server is not one that keeps what it
// is given. Asking again does not help, as it may with any other error of OpenLinks.
var ErrUnfit = errors.New("unusable database")

// CheckServer looks whether the server keeps what it acknowledges. warning is for the log.
func CheckServer(ctx context.Context, q Querier) (warning string, err error) {
	var version, commit, fsync string
	row := q.QueryRow(ctx, `SELECT current_setting('server_version_num'), current_setting('synchronous_commit'), current_setting('fsync')`)
	if err := row.Scan(&version, &commit, &fsync); err != nil {
		return "", fmt.Errorf("read the settings of the database: %w", err)
	}
	if n, err := strconv.Atoi(version); err != nil || n < minVersion {
		return "", fmt.Errorf("%w: PostgreSQL %s is too old, expected 15 or newer", ErrUnfit, version)
	}
	if commit == "off" {
		return "", fmt.Errorf("%w: synchronous_commit is off, which can lose acknowledged links; "+
			"ALTER ROLE ... SET synchronous_commit = on", ErrUnfit)
	}
	if fsync == "off" {
		warning = "database fsync is off, a power cut can lose links or corrupt the database"
	}
	return warning, nil
}

// Probe connects to a database as OpenLinks does, changes nothing, and says what is there.
func Probe(ctx context.Context, url string) (string, error) {
	pool, err := NewPool(ctx, url, 1)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	warning, err := CheckServer(ctx, pool)
	if err != nil {
		return "", err
	}
	var version string
	if err := pool.QueryRow(ctx, `SELECT current_setting('server_version')`).Scan(&version); err != nil {
		return "", fmt.Errorf("read the version: %w", err)
	}
	if warning != "" {
		warning = "; " + warning
	}
	return "answers, PostgreSQL " + version + warning, nil
}

const (
	SettingCodeKey = "code_key"
	HealthEvery    = time.Second
)

// countedLinks is how many links are counted one by one, where PostgreSQL has no estimate yet.
const countedLinks = 1_000_000

const (
	sqlEstimateLinks = `SELECT reltuples::bigint FROM pg_class WHERE oid = to_regclass('links')`
	sqlCountLinks    = `SELECT count(*) FROM (SELECT FROM links LIMIT $1) AS counted`
)

// CountLinks returns about how many links a database has: PostgreSQL's estimate, or where that is small
// their number. A database without tables has none.
func CountLinks(ctx context.Context, url string) (n int64, err error) {
	pool, err := NewPool(ctx, url, 1)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	err = pool.QueryRow(ctx, sqlEstimateLinks).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	if err == nil && n < countedLinks {
		err = pool.QueryRow(ctx, sqlCountLinks, countedLinks).Scan(&n)
	}
	if err != nil {
		return 0, fmt.Errorf("count links: %w", err)
	}
	return n, nil
}
