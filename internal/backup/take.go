package backup

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/counts"
	"curt/internal/backend/sqlite/leases"
	"curt/internal/backend/sqlite/snapshot"
	"curt/internal/clicks/clicklog"
	"curt/internal/statefile"
)

// ProgressFunc hears how far the work has come: what is done, and how many bytes of how many.
type ProgressFunc func(what string, done, total int64)

// TakeConfig says what is backed up, and where to.
type TakeConfig struct {
	Data     string // the data folder; a server may run on it
	To       string // the backup's folder, which must not be there
	Version  string // of this program
	Progress ProgressFunc
}

// partialSuffix ends the name of a backup that is not whole.
const partialSuffix = ".partial"

// Take makes a backup and returns what it says of itself. When it returns nil the backup
// is on the disk and Restore takes it. With ErrRows it is on the disk, too, as true as
// what it copies: Restore refuses it, but an export reads the other links out of it. With
// ErrUnnoted it is whole, and Last does not know of it.
// After another error there is none, and nothing of it is left.
func Take(ctx context.Context, c TakeConfig) (Manifest, error) {
	c.To = filepath.Clean(c.To)
	if _, err := os.Lstat(c.To); !errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, errors.Join(fmt.Errorf("%s already exists", c.To), err)
	}
	if _, err := os.Stat(filepath.Join(c.Data, linksFile)); err != nil {
		return Manifest{}, fmt.Errorf("%s is not a data folder: %w", c.Data, err)
	}
	if err := apart(c.Data, c.To); err != nil {
		return Manifest{}, err
	}
	partial := c.To + partialSuffix
	lock, err := claim(partial)
	if err != nil {
		return Manifest{}, err
	}
	t := taker{TakeConfig: c, folder: partial}
	err = t.take(ctx)
	if err == nil {
		err = publish(partial, c.To)
	}
	if err != nil {
		return t.manifest, errors.Join(err, os.RemoveAll(partial), lock.Close())
	}
	if err = t.damage; err == nil {
		err = note(c.Data, &t.manifest)
	}
	return t.manifest, errors.Join(err, lock.Close())
}

// claim makes an empty folder that is ours alone while the file is open. What a killed
// run has left in it goes.
func claim(folder string) (*os.File, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("create the backup folder: %w", err)
	}
	f, err := os.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("create the backup folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another backup is being written to %s: %w", folder, err), f.Close())
	}
	entries, err := f.ReadDir(-1)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, e.Name())))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("clear %s: %w", folder, err), f.Close())
	}
	return f, nil
}

// publish gives a whole backup its name.
func publish(partial, name string) error {
	if err := os.Rename(partial, name); err != nil {
		return fmt.Errorf("name the backup: %w", err)
	}
	return statefile.SyncFolder(filepath.Dir(name))
}

// taker is one run of Take.
type taker struct {
	TakeConfig

	folder   string
	manifest Manifest
	damage   error // ErrRows
}

func (t *taker) take(ctx context.Context) (err error) {
	log, err := clicklog.PinDir(filepath.Join(t.Data, logFolder))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	rollups, links, err := t.fix(ctx, log)
	if err != nil {
		return err
	}
	if err := t.database(ctx, rollups.Snapshot, clicksFile); err != nil {
		return errors.Join(err, links.Close())
	}
	if err := t.database(ctx, links.Snapshot, linksFile); err != nil {
		return err
	}
	t.Progress("check the links", 0, 0)
	if err := checkLinks(ctx, filepath.Join(t.folder, linksFile)); errors.Is(err, ErrRows) {
		t.damage = err
	} else if err != nil {
		return err
	}
	if err := t.segments(ctx, log); err != nil {
		return err
	}
	if err := t.key(ctx); err != nil {
		return err
	}
	return t.sign()
}

// fix holds the state of one moment: doc.go says why in this order.
func (t *taker) fix(ctx context.Context, log *clicklog.Pins) (rollups counts.Snapshot, links *sqlite.Snapshot, err error) {
	if rollups, err = counts.TakeSnapshot(ctx, filepath.Join(t.Data, clicksFile)); err != nil {
		return rollups, nil, err
	}
	m := &t.manifest
	*m = Manifest{Format: format, Curt: t.Version, Schemas: map[string]int64{}}
	counted, err := rollups.Counted()
	if err == nil {
		err = log.Extend()
	}
	m.Taken = time.Now().UTC().Truncate(time.Millisecond)
	if err == nil {
		links, err = sqlite.TakeSnapshot(ctx, filepath.Join(t.Data, linksFile))
	}
	if err != nil {
		return rollups, nil, errors.Join(err, rollups.Close())
	}
	m.Counted, m.LogEnd = counted.Position.String(), log.End().String()
	m.Schemas[clicksFile], err = rollups.Schema()
	if err == nil {
		m.Schemas[linksFile], err = links.Schema()
	}
	if err != nil {
		return rollups, nil, errors.Join(err, rollups.Close(), links.Close())
	}
	return rollups, links, nil
}

// database copies a snapshot, which it closes.
func (t *taker) database(ctx context.Context, s *snapshot.Snapshot, name string) error {
	to := filepath.Join(t.folder, name)
	err := s.Copy(ctx, to, func(done, total int64) { t.Progress("copy "+name, done, total) })
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	t.Progress("check "+name, 0, 0)
	if err := snapshot.Seal(ctx, to, leases.ForgetDayKeys); err != nil {
		return fmt.Errorf("the copy of %s: %w", name, err)
	}
	f, err := os.Open(to)
	if err != nil {
		return fmt.Errorf("read the copy back: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync the copy: %w", err)
	}
	return t.add(ctx, name, io.Discard, f)
}

func (t *taker) segments(ctx context.Context, log *clicklog.Pins) error {
	if err := os.Mkdir(filepath.Join(t.folder, logFolder), 0o700); err != nil {
		return fmt.Errorf("copy the click log: %w", err)
	}
	for _, s := range log.Segments() {
		if s.Size == 0 {
			continue
		}
		if err := t.copy(ctx, logFolder+"/"+s.Name, io.NewSectionReader(s.File, 0, s.Size)); err != nil {
			return err
		}
	}
	return statefile.SyncFolder(filepath.Join(t.folder, logFolder))
}

// key copies the admin key; an operator who set it elsewhere has none here.
func (t *taker) key(ctx context.Context) error {
	f, err := os.Open(filepath.Join(t.Data, keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("copy the admin key: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	return t.copy(ctx, keyFile, f)
}

// copy writes one file of the backup.
func (t *taker) copy(ctx context.Context, name string, from io.Reader) error {
	to, err := newFile(filepath.Join(t.folder, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	if err := t.add(ctx, name, to, from); err != nil {
		_ = to.Close() // it is removed
		return err
	}
	return to.close()
}

// add copies a file's bytes and puts it into the manifest.
func (t *taker) add(ctx context.Context, name string, to io.Writer, from io.Reader) error {
	n, sum, err := copySum(ctx, to, from, func(done int64) { t.Progress("write "+name, done, 0) })
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	t.manifest.Files = append(t.manifest.Files, File{Name: name, Size: n, sum: sum})
	return nil
}

// sign writes the manifest and the checksums, and sees to it that all is on the disk.
func (t *taker) sign() error {
	text, err := json.MarshalIndent(&t.manifest, "", "  ")
	if err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	text = append(text, '\n')
	for name, content := range map[string][]byte{manifestFile: text, sumsFile: sums(t.manifest.Files, text)} {
		f, err := newFile(filepath.Join(t.folder, name))
		if err != nil {
			return err
		}
		_, err = f.Write(content)
		if err = errors.Join(err, f.close()); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return statefile.SyncFolder(t.folder)
}

// copySum copies and returns how many bytes there were, and their checksum.
func copySum(ctx context.Context, to io.Writer, from io.Reader, told func(done int64)) (n int64, sum [sha256.Size]byte, err error) {
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for {
		if ctx.Err() != nil {
			return n, sum, context.Cause(ctx)
		}
		k, err := from.Read(buf)
		h.Write(buf[:k])
		if _, werr := to.Write(buf[:k]); werr != nil {
			return n, sum, werr
		}
		n += int64(k)
		told(n)
		if errors.Is(err, io.EOF) {
			return n, [sha256.Size]byte(h.Sum(nil)), nil
		}
		if err != nil {
			return n, sum, err
		}
	}
}
