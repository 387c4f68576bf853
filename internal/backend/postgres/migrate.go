package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// minVersion is the oldest server that the tests run against.
const minVersion = 150000

// ErrUnfit says that the address is wrong, or that the server is not one that keeps what it
// is given. Asking again does not help, as it may with any other error of OpenLinks.
var ErrUnfit = errors.New("the database cannot be used")

// migrate brings the schema of a folder of migrations up to date; table keeps which of them
// were applied. Of several processes that start at once one does
// it: a row with a lease is the lock, because a pooler in transaction mode would keep an
// advisory lock of the session behind our back.
func migrate(ctx context.Context, pool *pgxpool.Pool, all embed.FS, folder, table string) error {
	files, err := fs.Sub(all, folder)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	locker, err := lock.NewPostgresTableLocker(
		lock.WithTableLockTimeout(time.Second, 60), lock.WithTableUnlockTimeout(time.Second, 5))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	db := stdlib.OpenDBFromPool(pool)
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithLocker(locker), goose.WithTableName(table))
	if err != nil {
		return errors.Join(fmt.Errorf("migrate: %w", err), db.Close())
	}
	pending, err := p.HasPending(ctx)
	if err == nil && pending {
		_, err = p.Up(ctx)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// fit looks whether the server keeps what it acknowledges. warning is for the log.
func fit(ctx context.Context, q querier) (warning string, err error) {
	var version, commit, fsync string
	row := q.QueryRow(ctx, `SELECT current_setting('server_version_num'), current_setting('synchronous_commit'), current_setting('fsync')`)
	if err := row.Scan(&version, &commit, &fsync); err != nil {
		return "", fmt.Errorf("ask for the settings of the database: %w", err)
	}
	if n, err := strconv.Atoi(version); err != nil || n < minVersion {
		return "", fmt.Errorf("%w: PostgreSQL %s is too old, want 15 or newer", ErrUnfit, version)
	}
	if commit == "off" {
		return "", fmt.Errorf("%w: synchronous_commit is off, so that links would be lost after their 201; "+
			"ALTER ROLE ... SET synchronous_commit = on", ErrUnfit)
	}
	if fsync == "off" {
		warning = "fsync of the database is off: a power cut may lose links and more"
	}
	return warning, nil
}

// Probe connects to a database as OpenLinks does, changes nothing, and says what is there.
func Probe(ctx context.Context, url string) (string, error) {
	pool, err := newPool(ctx, url, 1)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	warning, err := fit(ctx, pool)
	if err != nil {
		return "", err
	}
	var version string
	if err := pool.QueryRow(ctx, `SELECT current_setting('server_version')`).Scan(&version); err != nil {
		return "", fmt.Errorf("ask for the version: %w", err)
	}
	if warning != "" {
		warning = "; " + warning
	}
	return "answers, PostgreSQL " + version + warning, nil
}

// ProbeReplica connects to a standby as OpenLinks does to a replica, changes nothing, and says
// what is there. What is no standby is an error, and so is one of another cluster than the
// primary that a second URL names. Where a user may not ask for that, or the primary does not
// answer, the standby is accepted, and what is said has the doubt.
func ProbeReplica(ctx context.Context, url, primary string) (string, error) {
	pool, err := lazyPool(url, 1)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*connectLimit)
	defer cancel()
	if _, _, err := replayed(ctx, pool); err != nil {
		return "", fmt.Errorf("ask the standby: %w", err)
	}
	var version string
	if err := pool.QueryRow(ctx, `SELECT current_setting('server_version')`).Scan(&version); err != nil {
		return "", fmt.Errorf("ask for the version: %w", err)
	}
	doubt, err := probeCluster(ctx, pool, primary)
	if err != nil {
		return "", err
	}
	if doubt != "" {
		doubt = "; whether it follows the primary in CURT_LINKS is not known: " + doubt
	}
	return "a standby answers, PostgreSQL " + version + doubt, nil
}
