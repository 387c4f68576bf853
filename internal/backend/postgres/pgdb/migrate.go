package pgdb

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"curt/internal/background"
)

//go:embed migrations/*.sql
var migrations embed.FS

//go:embed contracts
var contracts embed.FS

// Migrate brings the schema of a folder of migrations up to date; table keeps which of them
// were applied. Of several processes that start at once one does
// it: a row with a lease is the lock, because a pooler in transaction mode would keep an
// advisory lock of the session behind our back.
func Migrate(ctx context.Context, pool *pgxpool.Pool, all fs.FS, folder, table string) error {
	return migrate(ctx, pool, all, folder, table, func() error { return nil })
}

// migrate is Migrate with a check that runs before the first migration, if one is pending.
func migrate(ctx context.Context, pool *pgxpool.Pool, all fs.FS, folder, table string, check func() error) error {
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
		if err = check(); err == nil {
			_, err = p.Up(ctx)
		}
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// Expand brings the schema at a URL up to date, as the first server of a release does and under the same limits, and
// reports whether it was older. Servers of earlier releases go on beside it.
func Expand(ctx context.Context, url string) (older bool, err error) {
	pool, err := NewPool(ctx, url, 2)
	if err != nil {
		return false, err
	}
	defer pool.Close()
	if _, err := CheckServer(ctx, pool); err != nil {
		return false, err
	}
	if err := checkNeeds(ctx, pool); err != nil {
		return false, err
	}
	if err = checkMigrated(ctx, pool); !errors.Is(err, ErrNotMigrated) {
		return false, err
	}
	return true, Migrate(ctx, pool, migrations, "migrations", goose.DefaultTablename)
}

// newest is the number of the last migration in a folder; 0 = there is none.
func newest(all fs.FS, folder string) (version int64) {
	names, _ := fs.Glob(all, folder+"/*.sql") // the pattern is well-formed
	for _, name := range names {
		digits, _, _ := strings.Cut(path.Base(name), "_")
		n, _ := strconv.ParseInt(digits, 10, 64) // goose refuses other names
		version = max(version, n)
	}
	return version
}

// applicationName is what a server calls itself: the schema that it knows is in pg_stat_activity, so that
// no server has to write it anywhere. Releases before this one were "curt".
func applicationName() string { return fmt.Sprintf("curt/%d", newest(migrations, "migrations")) }

// migrator is the name of connections that run contract migrations.
const migrator = "curt migrate"

// Contracts are migrations that remove what older servers need. [Contract] runs those of curt.
func Contracts() fs.FS { return contracts }

// OlderServersError says that a contract migration is too early.
type OlderServersError struct {
	Needs int64    // the schema that all servers must know
	Found []string // names of the sessions that do not
}

// Error returns one line.
func (e *OlderServersError) Error() string {
	return fmt.Sprintf("a contract migration needs servers that know schema %d; upgrade or end first: %s", e.Needs, strings.Join(e.Found, ", "))
}

// Contract runs the contract migrations in the folder contracts of all. It is idempotent, and returns an
// *OlderServersError while a server is connected that one of them would break.
//
// The database says first what a server must know, so that older ones refuse to start from then on. Only then
// are those looked for that run already: none can come in between.
func Contract(ctx context.Context, url string, all fs.FS) error {
	needs := newest(all, "contracts")
	if needs == 0 {
		return nil
	}
	pool, err := named(ctx, url, migrator)
	if err != nil {
		return err
	}
	defer pool.Close()
	return migrate(ctx, pool, all, "contracts", "goose_contract_version", func() error {
		before, err := readNeeds(ctx, pool)
		if err != nil {
			return err
		}
		if err := writeNeeds(ctx, pool, max(before, needs)); err != nil {
			return err
		}
		found, err := olderServers(ctx, pool, needs)
		if err == nil && len(found) > 0 {
			err = &OlderServersError{Needs: needs, Found: found}
		}
		if err != nil {
			return errors.Join(err, writeNeeds(context.WithoutCancel(ctx), pool, before))
		}
		return nil
	})
}

// named is a small pool whose connections have a name.
func named(ctx context.Context, url, name string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = name
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	config.MaxConns = 2
	return new(liveness).connected(ctx, config)
}

const (
	// Behind a pooler in transaction mode a session has the name of the server that used it last. Each
	// server reads changes every second, so that several looks meet all of them.
	looks     = 30
	lookEvery = 100 * time.Millisecond
)

const sqlSessions = `SELECT DISTINCT application_name FROM pg_stat_activity
	WHERE datname = current_database() AND backend_type = 'client backend' AND application_name <> $1
		AND (application_name LIKE 'curt%' OR usename = current_user)`

// olderServers returns the names of sessions of servers that do not know a schema. Others of the same
// user count: a URL may name its application.
func olderServers(ctx context.Context, q Querier, needs int64) (found []string, err error) {
	for range looks {
		err := Each(ctx, q, func(row pgx.Row) error {
			var name string
			if err := row.Scan(&name); err != nil {
				return err
			}
			digits, _ := strings.CutPrefix(name, "curt/")
			if knows, err := strconv.ParseInt(digits, 10, 64); err != nil || knows < needs {
				found = append(found, strconv.Quote(name))
			}
			return nil
		}, sqlSessions, migrator)
		if err != nil {
			return nil, fmt.Errorf("find older servers: %w", err)
		}
		if len(found) > 0 || !background.Sleep(ctx, lookEvery) {
			break
		}
	}
	slices.Sort(found)
	return slices.Compact(found), ctx.Err()
}

// needsPrefix begins the comment of the table of links that says which schema a server must know. Every
// user may read it, whatever rights it has.
const needsPrefix = "curt needs schema "

const sqlNeeds = `SELECT coalesce(obj_description(to_regclass('links'), 'pg_class'), '')`

func readNeeds(ctx context.Context, q Querier) (needs int64, err error) {
	var text string
	if err := q.QueryRow(ctx, sqlNeeds).Scan(&text); err != nil {
		return 0, fmt.Errorf("read which schema the database needs: %w", err)
	}
	if digits, found := strings.CutPrefix(text, needsPrefix); found {
		if needs, err = strconv.ParseInt(digits, 10, 64); err != nil {
			return 0, fmt.Errorf("%w: the comment of the table links is %q", ErrUnfit, text)
		}
	}
	return needs, nil
}

func writeNeeds(ctx context.Context, q Querier, needs int64) error {
	statement := "COMMENT ON TABLE links IS NULL"
	if needs > 0 {
		statement = fmt.Sprintf("COMMENT ON TABLE links IS '%s%d'", needsPrefix, needs)
	}
	if _, err := q.Exec(ctx, statement); err != nil {
		return fmt.Errorf("write which schema the database needs: %w", err)
	}
	return nil
}

// checkNeeds refuses a database whose contract migrations have removed what this program needs.
func checkNeeds(ctx context.Context, q Querier) error {
	needs, err := readNeeds(ctx, q)
	if err != nil {
		return err
	}
	if knows := newest(migrations, "migrations"); needs > knows {
		return fmt.Errorf("%w: it was changed by a newer curt (it needs schema %d, this one knows %d); start the newer one", ErrUnfit, needs, knows)
	}
	return nil
}

// ErrNotMigrated says that a database does not have the schema of this release yet.
var ErrNotMigrated = errors.New("the schema is not migrated to that of this release: run curt migrate")

const (
	sqlHasMigrations = `SELECT to_regclass('goose_db_version') IS NOT NULL`
	sqlMigrated      = `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`
)

// checkMigrated returns ErrNotMigrated unless all migrations that this program knows were applied.
func checkMigrated(ctx context.Context, q Querier) error {
	var there bool
	var version int64
	err := q.QueryRow(ctx, sqlHasMigrations).Scan(&there)
	if err == nil && there {
		err = q.QueryRow(ctx, sqlMigrated).Scan(&version)
	}
	if err == nil && version < newest(migrations, "migrations") {
		err = ErrNotMigrated
	}
	if err != nil {
		return fmt.Errorf("read the version of the schema: %w", err)
	}
	return nil
}
