package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver "sqlite": SQLite in Go, so that the binary stays static
)

// minVersion is the first SQLite without the bug that could corrupt a file when
// the WAL was reset while a writer ran (fixed in 3.51.3).
const minVersion = "3.51.3"

// file says how one database file is opened.
type file struct {
	path        string
	synchronous string // FULL or NORMAL
	cacheKiB    int    // page cache of the pool's reading connections; it takes twice that in memory (docs/decisions/0018)
	readers     int    // connections of the reading pool
	migrations  fs.FS  // goose files NNNNN_name.sql

	writerCacheKiB int // page cache of the writing connection; 0 = cacheKiB

	// secureDelete overwrites what is deleted with zeros, so that erased content
	// cannot be read from the file's free space.
	secureDelete bool
}

// handles are the two pools of one file: write holds exactly one connection,
// read only ever reads.
type handles struct {
	write *sql.DB
	read  *sql.DB

	renewed bool // nothing of an earlier process is left in the WAL
}

// open opens the file in WAL mode, refuses an SQLite that may corrupt it, and
// brings the schema and the file up to date. Automatic checkpoints are off: whoever owns the
// handles runs its own.
func open(ctx context.Context, f file) (handles, error) {
	if err := private(f.path); err != nil {
		return handles{}, err
	}
	write, err := pool(f, 1, cmp.Or(f.writerCacheKiB, f.cacheKiB), "")
	if err != nil {
		return handles{}, err
	}
	if err := prepare(ctx, write, f); err != nil {
		return handles{}, errors.Join(fmt.Errorf("open %s: %w", f.path, err), write.Close())
	}
	renewed, err := renewWAL(ctx, write)
	if err != nil {
		return handles{}, errors.Join(fmt.Errorf("open %s: %w", f.path, err), write.Close())
	}
	read, err := pool(f, f.readers, f.cacheKiB, "1")
	if err != nil {
		return handles{}, errors.Join(err, write.Close())
	}
	return handles{write: write, read: read, renewed: renewed}, nil
}

// private makes a new file that its owner alone may read: it holds everybody's
// links. SQLite gives the files beside it the same mode.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	return f.Close()
}

// renewWAL brings everything that the last process left in the WAL into the file,
// and begins the WAL anew. If an fsync failed back then, pages of the WAL may be in
// memory only: this process would read them and write behind them, and a power cut
// would leave a hole that takes the newer commits with it. A file that another
// handle uses, or a disk without room, is no reason not to start; then it was not renewed.
func renewWAL(ctx context.Context, db *sql.DB) (renewed bool, err error) {
	var busy, pages, moved int
	err = db.QueryRowContext(ctx, sqlTruncateWAL).Scan(&busy, &pages, &moved)
	if code := resultCode(err) & 0xff; err != nil && code != codeFull && code != codeBusy {
		return false, fmt.Errorf("bring the write-ahead log into the file: %w", err)
	}
	return err == nil && busy == 0, nil
}

func (h handles) close() error { return errors.Join(h.read.Close(), h.write.Close()) }

func pool(f file, size, cacheKiB int, queryOnly string) (*sql.DB, error) {
	abs, err := filepath.Abs(f.path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", f.path, err)
	}
	pragmas := []string{
		"journal_mode(WAL)", "synchronous(" + f.synchronous + ")", "wal_autocheckpoint(0)",
		"busy_timeout(5000)", "foreign_keys(1)", "temp_store(MEMORY)", "mmap_size(0)",
		"cache_size(-" + strconv.Itoa(cacheKiB) + ")",
	}
	if f.secureDelete {
		pragmas = append(pragmas, "secure_delete(1)")
	}
	q := url.Values{"_pragma": pragmas}
	if queryOnly != "" {
		q.Add("_pragma", "query_only("+queryOnly+")")
	} else {
		q.Set("_txlock", "immediate")
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: abs, RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", f.path, err)
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size) // a connection that is closed loses its statements and page cache
	return db, nil
}

func prepare(ctx context.Context, db *sql.DB, f file) error {
	var version string
	if err := db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version); err != nil {
		return fmt.Errorf("ask for the SQLite version: %w", err)
	}
	if !atLeast(version, minVersion) {
		return fmt.Errorf("SQLite %s is too old, want %s or newer", version, minVersion)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, f.migrations)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if err := tooNew(ctx, db, p); err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// atLeast compares dotted version numbers.
func atLeast(have, want string) bool {
	h, w := strings.Split(have, "."), strings.Split(want, ".")
	for i := range w {
		if i >= len(h) {
			return false
		}
		a, errA := strconv.Atoi(h[i])
		b, errB := strconv.Atoi(w[i])
		if errA != nil || errB != nil {
			return false
		}
		if a != b {
			return a > b
		}
	}
	return true
}
