// Package snapshot reads a database file of SQLite as it is at one moment, beside the process that
// writes it, and copies and checks files that nobody has open. Read Take first.
package snapshot

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
)

// Snapshot is a database file as it was at one moment, read beside the process that
// writes it. It holds no lock that a writer or a reader waits for. While it is open no
// checkpoint can begin the write-ahead log anew, so that what is written meanwhile
// takes room until Close.
//
// It is used by one goroutine at a time.
type Snapshot struct {
	path string
	db   *sql.DB
	conn *sqlitedb.Conn
}

const sqlTables = `SELECT count(*) FROM sqlite_schema`

// Take returns the state of now of a file that is there.
func Take(ctx context.Context, path string) (*Snapshot, error) {
	db, err := openPlain(path, "ro", "busy_timeout(5000)", "cache_size(-2048)", "mmap_size(0)")
	if err != nil {
		return nil, err
	}
	s := &Snapshot{path: path, db: db}
	if s.conn, err = sqlitedb.NewConn(ctx, db); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	err = s.conn.Do(func(t *sqlitedb.Tx) error {
		if _, err := t.Exec(sqlitedb.SQLBeginRead); err != nil {
			return err
		}
		_, _, err := t.Number(sqlTables) // the first read is what fixes the state
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, sqlitedb.ClassifyFile(path, err)), s.Close())
	}
	return s, nil
}

// openPlain opens a file that is there, one connection at a time.
func openPlain(path, mode string, pragmas ...string) (*sql.DB, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open: %w", err) // SQLite would say less
	}
	dsn, err := plainDSN(path, mode, pragmas...)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

func plainDSN(path, mode string, pragmas ...string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", path, err)
	}
	q := url.Values{"_pragma": pragmas, "mode": {mode}}
	return (&url.URL{Scheme: "file", Path: abs, RawQuery: q.Encode()}).String(), nil
}

const sqlSchema = `SELECT max(version_id) FROM goose_db_version WHERE is_applied`

// Schema returns the number of the newest migration of the file.
func (s *Snapshot) Schema() (version int64, err error) { return s.schemaNumber(sqlSchema) }

// Needs returns the oldest schema that a program must know to open the file, which a
// migration writes that the programs before it could not live with; 0 = any.
func (s *Snapshot) Needs() (version int64, err error) { return s.schemaNumber(sqlitedb.SQLNeeds) }

func (s *Snapshot) schemaNumber(query string) (n int64, err error) {
	err = s.View("read the schema of", func(t *sqlitedb.Tx) error {
		n, _, err = t.Number(query)
		return err
	})
	return n, err
}

// Renew moves the snapshot to the state of now, and lets go of the one it held.
func (s *Snapshot) Renew() error {
	err := s.conn.Do(func(t *sqlitedb.Tx) error {
		if _, err := t.Exec(sqlitedb.SQLRollback); err != nil {
			return err
		}
		if _, err := t.Exec(sqlitedb.SQLBeginRead); err != nil {
			return err
		}
		_, _, err := t.Number(sqlTables)
		return err
	})
	if err != nil {
		return fmt.Errorf("read %s again: %w", s.path, sqlitedb.ClassifyFile(s.path, err))
	}
	return nil
}

// View lends f the connection. What it reads is of the snapshot's moment. what, before the name of
// the file, says in errors what is done.
func (s *Snapshot) View(what string, f func(t *sqlitedb.Tx) error) error {
	if err := s.conn.Do(f); err != nil {
		return fmt.Errorf("%s %s: %w", what, s.path, sqlitedb.ClassifyFile(s.path, err))
	}
	return nil
}

// Path returns the name of the file.
func (s *Snapshot) Path() string { return s.path }

const (
	sqlDeepCheck    = `PRAGMA integrity_check(10)`
	sqlForeignCheck = `PRAGMA foreign_key_check`
)

// Damage returns what SQLite's own check finds wrong with the file, at most ten lines,
// and rows that refer to none. deep also compares every index with its table, which
// takes several times as long.
func (s *Snapshot) Damage(deep bool) (damage []string, err error) {
	check := sqlitedb.SQLQuickCheck
	if deep {
		check = sqlDeepCheck
	}
	err = s.View("check", func(t *sqlitedb.Tx) error {
		err := t.Each(check, func(row []driver.Value) error {
			if text := sqlitedb.Next[string](&sqlitedb.Scanner{Row: row}); text != "ok" {
				damage = append(damage, text)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return t.Each(sqlForeignCheck, func(row []driver.Value) error {
			damage = append(damage, fmt.Sprintf("row %v of %v refers to a missing row of %v", row[1], row[0], row[2]))
			return nil
		})
	})
	return damage, err
}

// Page walks a table by its numbers; row returns the number of what it was given.
func (s *Snapshot) Page(after link.Cursor, n int, query string, next *link.Cursor, row func([]driver.Value) (int64, error)) error {
	from, err := sqlitedb.ParseRowCursor(after)
	if err != nil {
		return err
	}
	seen := 0
	err = s.conn.Do(func(t *sqlitedb.Tx) error {
		return t.Each(query, func(values []driver.Value) (err error) {
			seen++
			from, err = row(values)
			return err
		}, from, int64(n))
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", s.path, sqlitedb.ClassifyFile(s.path, err))
	}
	if *next = ""; seen == n {
		*next = sqlitedb.RowCursor(from)
	}
	return nil
}

// copyPages are copied between two looks at the context, 4 MiB, and syncPages between
// two fsyncs of the copy: a file system that orders data before its journal would
// otherwise have the fsync of the next create wait for gigabytes of ours.
const (
	copyPages = 1024
	syncPages = 4 * copyPages
)

// Copy writes the file's state to a new file, and tells how many bytes of how many it
// has written. The copy is a database in the same journal mode, and not yet durable.
func (s *Snapshot) Copy(ctx context.Context, to string, told func(done, total int64)) error {
	if err := sqlitedb.CreatePrivate(to); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("copy %s: %w", s.path, err)
	}
	defer f.Close() //nolint:errcheck // only syncs
	// The copy is nobody's before it is whole, so it needs no journal.
	dsn, err := plainDSN(to, "rw", "journal_mode(OFF)", "synchronous(OFF)", "locking_mode(EXCLUSIVE)")
	if err != nil {
		return err
	}
	err = s.conn.Backup(dsn, func(b *sqlite.Backup) error { return steps(ctx, b, f, told) })
	if sqlitedb.IsFull(err) || errors.Is(err, unix.ENOSPC) { // the copy is, not the store
		return fmt.Errorf("write %s: %w", to, unix.ENOSPC)
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", s.path, sqlitedb.ClassifyFile(s.path, err))
	}
	return nil
}

func steps(ctx context.Context, b *sqlite.Backup, f *os.File, told func(done, total int64)) error {
	for unsynced := 0; ; unsynced += copyPages {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		more, err := b.Step(copyPages)
		if err != nil {
			return err
		}
		total := int64(b.PageCount()) * sqlitedb.PageSize
		told(total-int64(b.Remaining())*sqlitedb.PageSize, total)
		if !more {
			return nil
		}
		if unsynced >= syncPages {
			unsynced = 0
			if err := f.Sync(); err != nil {
				return err
			}
		}
	}
}

// Close ends the view. Nothing was written.
func (s *Snapshot) Close() error {
	err := s.conn.Close() // ends the transaction
	if err = errors.Join(err, s.db.Close()); err != nil {
		return fmt.Errorf("close %s: %w", s.path, err)
	}
	return nil
}

// Seal makes a copy that nobody has open a single file that says nothing of what must
// not outlive its day, which forget deletes: it is overwritten. Seal checks the file's structure,
// and returns ErrCorrupt when that is wrong. Nothing is left beside the file.
func Seal(ctx context.Context, path string, forget func(t *sqlitedb.Tx) error) error {
	db, err := openPlain(path, "rw", "busy_timeout(5000)", "secure_delete(1)", "journal_mode(DELETE)", "cache_size(-65536)")
	if err != nil {
		return err
	}
	err = seal(ctx, db, forget)
	err = errors.Join(err, db.Close())
	if sqlitedb.IsFull(err) {
		return fmt.Errorf("write %s: %w", path, unix.ENOSPC)
	}
	if err != nil {
		return fmt.Errorf("seal %s: %w", path, sqlitedb.ClassifyFile(path, err))
	}
	return nil
}

func seal(ctx context.Context, db *sql.DB, forget func(t *sqlitedb.Tx) error) error {
	c, err := sqlitedb.NewConn(ctx, db)
	if err != nil {
		return err
	}
	err = c.Do(func(t *sqlitedb.Tx) error {
		if err := forget(t); err != nil {
			return err
		}
		return quickCheck(t)
	})
	return errors.Join(err, c.Close())
}

// quickCheck asks SQLite whether the file's structure is whole.
func quickCheck(t *sqlitedb.Tx) error {
	var damage []error
	err := t.Each(sqlitedb.SQLQuickCheck, func(row []driver.Value) error {
		if text := sqlitedb.Next[string](&sqlitedb.Scanner{Row: row}); text != "ok" {
			damage = append(damage, fmt.Errorf("%w: %s", sqlitedb.ErrCorrupt, text))
		}
		return nil
	})
	return errors.Join(append(damage, err)...)
}

// Check checks the structure of a file that nobody has open; damage is ErrCorrupt.
func Check(ctx context.Context, path string) error {
	db, err := openPlain(path, "ro", "cache_size(-65536)")
	if err != nil {
		return err
	}
	c, err := sqlitedb.NewConn(ctx, db)
	if err == nil {
		err = errors.Join(c.Do(quickCheck), c.Close())
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("check %s: %w", path, sqlitedb.ClassifyFile(path, err))
	}
	return nil
}
