package sqlitedb

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"modernc.org/sqlite"

	"curt/internal/link"
)

// Result codes of SQLite (https://www.sqlite.org/rescode.html) that decide what a
// failure means. The low byte is the class.
const (
	CodeBusy     = 5
	codeNoMem    = 7
	codeReadOnly = 8
	codeIOErr    = 10
	CodeCorrupt  = 11
	codeFull     = 13
	codeCantOpen = 14
	codeNotADB   = 26

	codeCorruptIndex = CodeCorrupt | 3<<8 // an index lacks the entry of a row; the file's structure is whole

	codeShmSize = codeIOErr | 19<<8 // the index of the WAL cannot grow; it may later
)

// ErrCorrupt means that the file says something that was never written. It comes
// wrapped in link.ErrUnavailable, because nobody can say what the link was.
var ErrCorrupt = errors.New("curt.db is damaged")

// ResultCode returns SQLite's extended result code; 0 = not an error of SQLite.
func ResultCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// systemic says that a failed statement is the fault of the file or the machine,
// not of its own arguments: no statement of the same transaction would fare better.
func systemic(err error) bool {
	switch ResultCode(err) & 0xff {
	case CodeBusy, codeNoMem, codeReadOnly, codeIOErr, CodeCorrupt, codeFull, codeCantOpen, codeNotADB:
		return true
	}
	return false
}

// IsDamage says that the file itself is wrong, so that nothing may be written on top.
func IsDamage(err error) bool {
	class := ResultCode(err) & 0xff
	return class == CodeCorrupt || class == codeNotADB
}

// IsFull reports whether the disk is full.
func IsFull(err error) bool { return ResultCode(err)&0xff == codeFull }

// Classify maps the error of a statement whose transaction was rolled back, or of a
// read: it did not happen, for certain.
func Classify(err error) error {
	switch {
	case err == nil:
		return nil
	case ResultCode(err) == 0: // one of ours, with its sentinel
		return err
	case ResultCode(err)&0xff == codeFull:
		return fmt.Errorf("%w: %w", link.ErrFull, err)
	case IsDamage(err):
		return fmt.Errorf("%w: %w: %w", link.ErrUnavailable, ErrCorrupt, err)
	}
	return fmt.Errorf("%w: %w", link.ErrUnavailable, err)
}

// uncertain says that a COMMIT which failed so may have happened. A full disk ends
// the commit before its last frame is written, and a busy file before its first.
func uncertain(err error) bool {
	class := ResultCode(err) & 0xff
	return class != codeFull && class != CodeBusy
}

// ErrUnreadable means that the disk does not give a file's bytes. SQLite calls that damage,
// but nothing need be wrong with them: it is over when the disk reads again, and no backup
// helps sooner.
var ErrUnreadable = errors.New("cannot be read")

// NewFileReader returns what reads a database and its write-ahead log as any program would, and
// returns the error that it meets, wrapped in ErrUnreadable. It never closes the database: a
// process that closes any descriptor of a file loses all locks that it has on it (fcntl(2)),
// SQLite's among them.
func NewFileReader() func(path string) error {
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

// ClassifyFile says what an error that SQLite calls damage is: the disk's, or the file's.
func ClassifyFile(path string, err error) error {
	if !IsDamage(err) {
		return Classify(err)
	}
	if disk := NewFileReader()(path); disk != nil {
		return fmt.Errorf("%w: %w", link.ErrUnavailable, disk)
	}
	return Classify(err)
}

// checkAgain spaces what a store that answers requests reads in order to tell the one from the
// other.
const checkAgain = 10 * time.Second

// Disk remembers what the last look at the files found.
type Disk struct {
	mu    sync.Mutex
	Read  func(path string) error // owned by whoever holds mu
	at    time.Time               // guarded by mu; zero = nobody has looked
	found error                   // guarded by mu
}

// check reads the files, unless somebody has just done so, or does.
func (d *Disk) check(path string) error {
	if !d.mu.TryLock() {
		return fmt.Errorf("%w; the cause is being determined", ErrUnreadable)
	}
	defer d.mu.Unlock()
	if d.at.IsZero() || time.Since(d.at) >= checkAgain || d.found != nil {
		d.found, d.at = d.Read(path), time.Now()
	}
	return d.found
}

// Explain returns the disk's error in the place of one that SQLite calls damage because of it.
func (d *Disk) Explain(path string, err error) error {
	if IsDamage(err) {
		if disk := d.check(path); disk != nil {
			return disk
		}
	}
	return err
}
