package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"curt/internal/link"
)

// ErrUnreadable means that the disk does not give a file's bytes. SQLite calls that damage,
// but nothing need be wrong with them: it is over when the disk reads again, and no backup
// helps sooner.
var ErrUnreadable = errors.New("cannot be read")

// wholeReader returns what reads a database and its write-ahead log as any program would, and
// returns the error that it meets, wrapped in ErrUnreadable. It never closes the database: a
// process that closes any descriptor of a file loses all locks that it has on it (fcntl(2)),
// SQLite's among them.
func wholeReader() func(path string) error {
	fd := -1
	return func(path string) (err error) {
		if fd < 0 {
			fd, err = syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		}
		if err == nil {
			err = readAll(fd)
		}
		if err == nil {
			err = readLog(path + "-wal") // SQLite locks the file beside it instead
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
		return nil
	}
}

func readAll(fd int) error {
	b := make([]byte, 1<<20)
	for at := int64(0); ; {
		n, err := syscall.Pread(fd, b, at)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return err
		}
		at += int64(n)
	}
}

func readLog(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, f)
	return errors.Join(err, f.Close())
}

// broken says what an error that SQLite calls damage is: the disk's, or the file's.
func broken(path string, err error) error {
	if !damaged(err) {
		return undone(err)
	}
	if disk := wholeReader()(path); disk != nil {
		return fmt.Errorf("%w: %w", link.ErrUnavailable, disk)
	}
	return undone(err)
}

// lookAgain spaces what a store that answers requests reads in order to tell the one from the
// other.
const lookAgain = 10 * time.Second

// disk remembers what the last look at the files found.
type disk struct {
	mu    sync.Mutex
	read  func(path string) error // owned by whoever holds mu
	at    time.Time               // guarded by mu; zero = nobody has looked
	found error                   // guarded by mu
}

// look reads the files, unless somebody has just done so, or does.
func (d *disk) look(path string) error {
	if !d.mu.TryLock() {
		return fmt.Errorf("%w; why is being looked for", ErrUnreadable)
	}
	defer d.mu.Unlock()
	if d.at.IsZero() || time.Since(d.at) >= lookAgain || d.found != nil {
		d.found, d.at = d.read(path), time.Now()
	}
	return d.found
}

// tell returns the disk's error in the place of one that SQLite calls damage because of it.
func (d *disk) tell(path string, err error) error {
	if damaged(err) {
		if disk := d.look(path); disk != nil {
			return disk
		}
	}
	return err
}

// failed says what an error of a read is.
func (s *Links) failed(err error) error {
	if !damaged(err) {
		return undone(err)
	}
	if disk := s.disk.look(s.config.Path); disk != nil {
		return fmt.Errorf("%w: %w", link.ErrUnavailable, disk)
	}
	return undone(err)
}

const (
	reviveFirst = 50 * time.Millisecond
	reviveMost  = 30 * time.Second
	sureAfter   = 3 // looks that find the same damage
)

// revive lets the writer go on after a statement that called the file damaged, once all of it
// can be read and passes SQLite's quick check on a new connection. Where it does not pass,
// though the disk reads it, writes are refused until the next start: nothing may be written
// on top of that.
func (s *Links) revive() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	for wait, sure := reviveFirst, 0; sure < sureAfter; wait = min(2*wait, reviveMost) {
		err := s.inspect(ctx)
		switch {
		case err == nil && s.writer.resume(ctx, s.handles.write):
			s.config.Log.InfoContext(ctx, "curt.db can be read again; writes go on")
			return
		case errors.Is(err, ErrCorrupt):
			sure++
		default:
			sure = 0
		}
		if err != nil {
			s.writer.because(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
	s.config.Log.ErrorContext(ctx, "curt.db is damaged; writes are refused until it is restored, or the server restarted", slog.Any("err", s.writer.failure()))
}

// inspect returns nil for files that can be read, and whose structure is whole.
func (s *Links) inspect(ctx context.Context) error {
	s.disk.mu.Lock()
	err := s.disk.read(s.config.Path)
	s.disk.mu.Unlock()
	if err != nil {
		return err
	}
	db, err := pool(file{path: s.config.Path, synchronous: s.config.Synchronous}, 1, 1<<10, "1")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	verdict, err := quickChecked(ctx, db)
	switch {
	case damaged(err):
		return undone(err)
	case err != nil:
		return err
	case len(verdict) != 1 || verdict[0] != "ok":
		return fmt.Errorf("%w: %s", ErrCorrupt, strings.Join(verdict, "; "))
	}
	return nil
}

// quickChecked returns what SQLite's quick check says: one line, "ok", of a file that is whole.
func quickChecked(ctx context.Context, db *sql.DB) (verdict []string, err error) {
	rows, err := db.QueryContext(ctx, sqlQuickCheck)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, err
		}
		verdict = append(verdict, line)
	}
	return verdict, rows.Err()
}
