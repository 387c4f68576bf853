package sqlitedb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver "sqlite": SQLite in Go, so that the binary stays static

	"curt/internal/link"
)

// minVersion is the first SQLite without the bug that could corrupt a file when
// the WAL was reset while a writer ran (fixed in 3.51.3).
const minVersion = "3.51.3"

// File says how one database file is opened.
type File struct {
	Path        string
	Synchronous string // FULL or NORMAL
	CacheKiB    int    // page cache of the pool's reading connections; it takes twice that in memory (docs/decisions/0018)
	Readers     int    // connections of the reading pool
	Migrations  fs.FS  // with goose files NNNNN_name.sql
	Folder      string // of Migrations, where they are

	WriterCacheKiB int // page cache of the writing connection; 0 = cacheKiB

	// secureDelete overwrites what is deleted with zeros, so that erased content
	// cannot be read from the file's free space.
	SecureDelete bool
}

// Handles are the two pools of one file: write holds exactly one connection,
// read only ever reads.
type Handles struct {
	Write *sql.DB
	Read  *sql.DB

	renewed bool // nothing of an earlier process is left in the WAL
}

// Open opens the file in WAL mode, refuses an SQLite that may corrupt it, and
// brings the schema and the file up to date. Automatic checkpoints are off: whoever owns the
// handles runs its own.
func Open(ctx context.Context, f File) (Handles, error) {
	if err := CreatePrivate(f.Path); err != nil {
		return Handles{}, err
	}
	write, err := pool(f, 1, cmp.Or(f.WriterCacheKiB, f.CacheKiB), "")
	if err != nil {
		return Handles{}, err
	}
	if err := prepare(ctx, write, f); err != nil {
		return Handles{}, errors.Join(fmt.Errorf("open %s: %w", f.Path, err), write.Close())
	}
	renewed, err := renewWAL(ctx, write)
	if err != nil {
		return Handles{}, errors.Join(fmt.Errorf("open %s: %w", f.Path, err), write.Close())
	}
	read, err := pool(f, f.Readers, f.CacheKiB, "1")
	if err != nil {
		return Handles{}, errors.Join(err, write.Close())
	}
	return Handles{Write: write, Read: read, renewed: renewed}, nil
}

// CreatePrivate creates a new file that its owner alone may read: it holds everybody's
// links. SQLite gives the files beside it the same mode.
func CreatePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	return f.Close()
}

const SQLTruncateWAL = `PRAGMA wal_checkpoint(TRUNCATE)`

// renewWAL brings everything that the last process left in the WAL into the file,
// and begins the WAL anew. If an fsync failed back then, pages of the WAL may be in
// memory only: this process would read them and write behind them, and a power cut
// would leave a hole that takes the newer commits with it. A file that another
// handle uses, or a disk without room, is no reason not to start; then it was not renewed.
func renewWAL(ctx context.Context, db *sql.DB) (renewed bool, err error) {
	var busy, pages, moved int
	err = db.QueryRowContext(ctx, SQLTruncateWAL).Scan(&busy, &pages, &moved)
	if code := ResultCode(err) & 0xff; err != nil && code != codeFull && code != CodeBusy {
		return false, fmt.Errorf("checkpoint the write-ahead log: %w", err)
	}
	return err == nil && busy == 0, nil
}

// Close closes both pools.
func (h Handles) Close() error { return errors.Join(h.Read.Close(), h.Write.Close()) }

func pool(f File, size, cacheKiB int, queryOnly string) (*sql.DB, error) {
	abs, err := filepath.Abs(f.Path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", f.Path, err)
	}
	pragmas := []string{
		"journal_mode(WAL)", "synchronous(" + f.Synchronous + ")", "wal_autocheckpoint(0)",
		"busy_timeout(5000)", "foreign_keys(1)", "temp_store(MEMORY)", "mmap_size(0)",
		"cache_size(-" + strconv.Itoa(cacheKiB) + ")",
	}
	if f.SecureDelete {
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
		return nil, fmt.Errorf("open %s: %w", f.Path, err)
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size) // a connection that is closed loses its statements and page cache
	return db, nil
}

func prepare(ctx context.Context, db *sql.DB, f File) error {
	var version string
	if err := db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version); err != nil {
		return fmt.Errorf("read the SQLite version: %w", err)
	}
	if !atLeast(version, minVersion) {
		return fmt.Errorf("SQLite %s is too old, expected %s or newer", version, minVersion)
	}
	var p *goose.Provider
	files, err := fs.Sub(f.Migrations, f.Folder)
	if err == nil {
		p, err = goose.NewProvider(goose.DialectSQLite3, db, files)
	}
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

// NewerError says that a newer curt has changed the file in a way that this one must
// not meet. The operator starts the newer one, or restores a backup from before the upgrade.
type NewerError struct {
	Needs int64 // the oldest schema that a program must know to open the file
	Knows int64 // the newest that this one knows
}

// Error returns one line.
func (e *NewerError) Error() string {
	return fmt.Sprintf("the file was changed by a newer curt (it needs schema %d, this one knows %d); "+
		"start the newer one, or restore a backup from before the upgrade", e.Needs, e.Knows)
}

const SQLNeeds = `PRAGMA user_version`

// tooNew returns a NewerError where the file says so.
//
// Migrations go forward only, and one program works on the schemas of its successors:
// they add tables, indexes and columns with defaults. So a release that disappoints is
// taken back by starting the one before. A migration that the programs before it could
// not live with says so in the file, which all releases look at first:
//
//	PRAGMA user_version = 7; -- the number of that migration
func tooNew(ctx context.Context, db *sql.DB, p *goose.Provider) error {
	var needs, knows int64
	if err := db.QueryRowContext(ctx, SQLNeeds).Scan(&needs); err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	for _, s := range p.ListSources() {
		knows = max(knows, s.Version)
	}
	if needs > knows {
		return &NewerError{Needs: needs, Knows: knows}
	}
	return nil
}

// NewestMigration returns the number of the newest migration in a folder.
func NewestMigration(files fs.ReadDirFS, folder string) (version int64, err error) {
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

// RowCursor is a position among the rows of links.
func RowCursor(n int64) link.Cursor { return link.Cursor(strconv.FormatInt(n, 10)) }

// ParseRowCursor returns the number of a RowCursor; of the empty one, that before all rows.
func ParseRowCursor(c link.Cursor) (int64, error) {
	if c == "" {
		return math.MinInt64, nil
	}
	n, err := strconv.ParseInt(string(c), 10, 64)
	if err != nil {
		return 0, link.BadCursor(c)
	}
	return n, nil
}
