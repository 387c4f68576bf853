package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"

	"curt/internal/clicks"
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
	conn *conn
}

// TakeSnapshot returns the state of now of a file that is there.
func TakeSnapshot(ctx context.Context, path string) (*Snapshot, error) {
	db, err := openPlain(path, "ro", "busy_timeout(5000)", "cache_size(-2048)", "mmap_size(0)")
	if err != nil {
		return nil, err
	}
	s := &Snapshot{path: path, db: db}
	if s.conn, err = newConn(ctx, db); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	err = s.conn.do(func(t *tx) error {
		if _, err := t.exec(sqlBeginRead); err != nil {
			return err
		}
		_, _, err := t.number(sqlTables) // the first read is what fixes the state
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, broken(path, err)), s.Close())
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

// Schema returns the number of the newest migration of the file.
func (s *Snapshot) Schema() (version int64, err error) { return s.schemaNumber(sqlSchema) }

// Needs returns the oldest schema that a program must know to open the file, which a
// migration writes that the programs before it could not live with; 0 = any.
func (s *Snapshot) Needs() (version int64, err error) { return s.schemaNumber(sqlNeeds) }

func (s *Snapshot) schemaNumber(query string) (n int64, err error) {
	err = s.conn.do(func(t *tx) error {
		n, _, err = t.number(query)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the schema of %s: %w", s.path, broken(s.path, err))
	}
	return n, nil
}

// Counted returns how far the file, a clicks.db, has counted the click log.
func (s *Snapshot) Counted() (state clicks.State, err error) {
	err = s.conn.do(func(t *tx) error {
		state, err = loadState(t)
		return err
	})
	if err != nil {
		return clicks.State{}, fmt.Errorf("read the position of %s: %w", s.path, broken(s.path, err))
	}
	return state, nil
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
	if err := private(to); err != nil {
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
	err = s.conn.held.Raw(func(dc any) error {
		from, ok := dc.(interface {
			NewBackup(to string) (*sqlite.Backup, error)
		})
		if !ok {
			return errDriver
		}
		b, err := from.NewBackup(dsn)
		if err != nil {
			return err
		}
		if err := steps(ctx, b, f, told); err != nil {
			_ = b.Finish() // says the same again
			return err
		}
		return b.Finish()
	})
	if resultCode(err)&0xff == codeFull || errors.Is(err, unix.ENOSPC) { // the copy is, not the store
		return fmt.Errorf("write %s: %w", to, unix.ENOSPC)
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", s.path, broken(s.path, err))
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
		total := int64(b.PageCount()) * pageSize
		told(total-int64(b.Remaining())*pageSize, total)
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
	err := s.conn.close() // ends the transaction
	if err = errors.Join(err, s.db.Close()); err != nil {
		return fmt.Errorf("close %s: %w", s.path, err)
	}
	return nil
}

// Seal makes a copy that nobody has open a single file that says nothing of what must
// not outlive its day: the keys of visitor tags, with which tags could be tied to
// addresses, are destroyed in it. It checks the file's structure, and returns ErrCorrupt
// when that is wrong. Nothing is left beside the file.
func Seal(ctx context.Context, path string) error {
	db, err := openPlain(path, "rw", "busy_timeout(5000)", "secure_delete(1)", "journal_mode(DELETE)", "cache_size(-65536)")
	if err != nil {
		return err
	}
	err = seal(ctx, db)
	err = errors.Join(err, db.Close())
	if resultCode(err)&0xff == codeFull {
		return fmt.Errorf("write %s: %w", path, unix.ENOSPC)
	}
	if err != nil {
		return fmt.Errorf("seal %s: %w", path, broken(path, err))
	}
	return nil
}

func seal(ctx context.Context, db *sql.DB) error {
	c, err := newConn(ctx, db)
	if err != nil {
		return err
	}
	err = c.do(func(t *tx) error {
		kept, _, err := t.number(sqlHoldsDays)
		if err == nil && kept > 0 {
			_, err = t.exec(sqlForgetDays)
		}
		if err != nil {
			return err
		}
		return quickCheck(t)
	})
	return errors.Join(err, c.close())
}

// quickCheck asks SQLite whether the file's structure is whole.
func quickCheck(t *tx) error {
	var damage []error
	err := t.each(sqlQuickCheck, func(row []driver.Value) error {
		if text := next[string](&scanner{row: row}); text != "ok" {
			damage = append(damage, fmt.Errorf("%w: %s", ErrCorrupt, text))
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
	c, err := newConn(ctx, db)
	if err == nil {
		err = errors.Join(c.do(quickCheck), c.close())
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("check %s: %w", path, broken(path, err))
	}
	return nil
}

// Schemas returns the number of the newest migration that this program knows of curt.db
// and of clicks.db.
func Schemas() (links, rollups int64, err error) {
	if links, err = newest(linksMigrations, "migrations/links"); err != nil {
		return 0, 0, err
	}
	rollups, err = newest(rollupsMigrations, "migrations/clicks")
	return links, rollups, err
}

func newest(files fs.ReadDirFS, folder string) (version int64, err error) {
	entries, err := files.ReadDir(folder)
	if err != nil {
		return 0, fmt.Errorf("read migrations: %w", err)
	}
	for _, e := range entries {
		digits, _, _ := strings.Cut(e.Name(), "_")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read migrations: %w", err)
		}
		version = max(version, n)
	}
	return version, nil
}
