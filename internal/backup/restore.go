package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/snapshot"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/statefile"
)

// RestoreConfig says what is restored, and where.
type RestoreConfig struct {
	From     string // the backup's folder
	Data     string // the data folder; the caller holds its lock
	Force    bool   // put what is there aside
	Now      time.Time
	Progress ProgressFunc
}

// Check reads what the backup says of itself, and returns the error that Restore would
// have before it touches the data folder, which need not be there.
func (c RestoreConfig) Check() (Manifest, error) {
	m, err := Read(c.From)
	if err != nil {
		return m, err
	}
	return m, apart(c.Data, c.From)
}

// Restored says what Restore did.
type Restored struct {
	Manifest Manifest
	Links    uint64 // tombstones included
	MovedTo  string // where what was there has gone; "" = there was nothing
	Finished bool   // the files of an earlier restore, which was interrupted, were moved in
}

// ErrNotEmpty means that a restore would replace what is there.
var ErrNotEmpty = errors.New("the data folder is not empty")

// Names inside a data folder while a restore works on it.
const (
	partialFolder = "restore.partial"
	readyFolder   = "restore.ready"
)

// Unfinished returns an error when a restore into the data folder was interrupted: what
// is there may be half of the old and half of the new.
func Unfinished(data string) error {
	for name, advice := range map[string]string{
		partialFolder: "run it again, or delete " + filepath.Join(data, partialFolder) + " to continue with the previous data",
		readyFolder:   "run it again",
	} {
		_, err := os.Lstat(filepath.Join(data, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("check for an unfinished restore: %w", err)
		default:
			return fmt.Errorf("a restore into %s did not finish: %s", data, advice)
		}
	}
	return nil
}

// Verify reads a whole backup and returns what it says of itself. ErrDamaged means that
// a byte of it is not what was written, or that files are missing; ErrRows, that what was
// copied was damaged already. Restore takes what Verify has nothing to say of.
func Verify(ctx context.Context, from string, told ProgressFunc) (Manifest, error) {
	m, err := Read(from)
	if err != nil {
		return Manifest{}, err
	}
	done := int64(0)
	for _, f := range m.Files {
		err := readFile(ctx, from, f, io.Discard, func(n int64) { told("read "+f.Name, done+n, m.Bytes()) })
		if err != nil {
			return Manifest{}, err
		}
		done += f.Size
	}
	for _, name := range []string{clicksFile, linksFile} {
		told("check "+name, 0, 0)
		if err := snapshot.Check(ctx, filepath.Join(from, name)); err != nil {
			return Manifest{}, err
		}
	}
	return m, checkLinks(ctx, filepath.Join(from, linksFile))
}

// checkLinks reads every link of a file that nobody writes.
func checkLinks(ctx context.Context, name string) error {
	s, err := sqlite.TakeSnapshot(ctx, name)
	if err != nil {
		return err
	}
	rows, err := s.EachLink(ctx, func(*link.Link) {})
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	switch {
	case len(rows.Damaged) > 0:
		return fmt.Errorf("%w, %d or more: %w", ErrRows, len(rows.Damaged), rows.Damaged[0])
	case rows.Hidden > 0:
		return fmt.Errorf("%w: %d cannot be found by their code", ErrRows, rows.Hidden)
	}
	return nil
}

// readFile copies a file of a backup and compares it with its checksum.
func readFile(ctx context.Context, from string, f File, to io.Writer, told func(done int64)) error {
	source, err := os.Open(filepath.Join(from, filepath.FromSlash(f.Name)))
	if err != nil {
		return fmt.Errorf("%s: %w: %w", from, ErrDamaged, err)
	}
	defer source.Close() //nolint:errcheck // only read
	n, sum, err := copySum(ctx, to, io.LimitReader(source, f.Size+1), told)
	if err != nil {
		return fmt.Errorf("read %s of %s: %w", f.Name, from, err)
	}
	if n != f.Size || sum != f.sum {
		return fmt.Errorf("%s: %w: %s is damaged", from, ErrDamaged, f.Name)
	}
	return nil
}

// Prepare makes a data folder that is not there in one step with what keeps servers off it
// until a restore is done: one that is killed in its first moments must leave none on which a
// server starts, empty.
func Prepare(data string) error {
	data = filepath.Clean(data)
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
		return nil // whoever locks the folder says what is wrong with it
	}
	making := data + ".restoring"
	if err := os.MkdirAll(filepath.Join(making, partialFolder), 0o750); err != nil {
		return fmt.Errorf("create the data folder: %w", err)
	}
	if err := os.Rename(making, data); err != nil {
		return fmt.Errorf("create the data folder: %w", err)
	}
	return statefile.SyncFolder(filepath.Dir(data))
}

// emptied makes a folder, or takes away what it holds. The folder itself stays throughout.
func emptied(folder string) error {
	if err := os.Mkdir(folder, 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, e.Name())))
	}
	return err
}

// Restore puts a backup in the place of the data folder. Until all of it has been read
// and checked, nothing that is there is touched.
func Restore(ctx context.Context, c RestoreConfig) (r Restored, err error) {
	if r.Manifest, err = c.Check(); err != nil {
		return r, err
	}
	if same, err := resume(c.Data, r.Manifest); err != nil || same {
		r.Finished = same
		return r, err
	}
	old, err := ours(c.Data)
	if err != nil {
		return r, err
	}
	if len(old) > 0 && !c.Force {
		return r, fmt.Errorf("%s: %w: it has %s", c.Data, ErrNotEmpty, old[0])
	}
	partial := filepath.Join(c.Data, partialFolder)
	if err := emptied(partial); err != nil {
		return r, fmt.Errorf("restore: %w", err)
	}
	if r.Links, err = fill(ctx, c, r.Manifest, partial); err != nil {
		return r, errors.Join(err, os.RemoveAll(partial))
	}
	r.MovedTo, err = swap(c.Data, old, c.Now)
	return r, err
}

// fill makes a whole data folder of a backup, but for its name.
func fill(ctx context.Context, c RestoreConfig, m Manifest, folder string) (links uint64, err error) {
	if err := os.Mkdir(filepath.Join(folder, logFolder), 0o700); err != nil {
		return 0, fmt.Errorf("restore: %w", err)
	}
	done := int64(0)
	for _, f := range m.Files {
		to, err := newFile(filepath.Join(folder, filepath.FromSlash(f.Name)))
		if err != nil {
			return 0, err
		}
		err = readFile(ctx, c.From, f, to, func(n int64) { c.Progress("copy "+f.Name, done+n, m.Bytes()) })
		if err = errors.Join(err, to.close()); err != nil {
			return 0, err
		}
		done += f.Size
	}
	c.Progress("check "+clicksFile, 0, 0)
	if err := snapshot.Check(ctx, filepath.Join(folder, clicksFile)); err != nil {
		return 0, err
	}
	if links, err = skipIssued(ctx, c, m, filepath.Join(folder, linksFile)); err != nil {
		return 0, err
	}
	if err := keepManifest(folder, m); err != nil {
		return 0, err
	}
	return links, errors.Join(statefile.SyncFolder(filepath.Join(folder, logFolder)), statefile.SyncFolder(folder))
}

// skipIssued checks the links, and skips the ids of codes that may have been given away since
// the backup was made.
func skipIssued(ctx context.Context, c RestoreConfig, m Manifest, name string) (count uint64, err error) {
	c.Progress("check "+linksFile, 0, 0)
	if err := errors.Join(snapshot.Check(ctx, name), checkLinks(ctx, name)); err != nil {
		return 0, err
	}
	links, err := sqlite.OpenLinks(ctx, sqlite.LinksConfig{Path: name, ReaderCacheKiB: 64 << 10})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, links.Close()) }()
	for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
		err := codegen.SkipAfterRestore(ctx, links, codegen.DefaultPrefix, length, c.Now.Sub(m.Taken))
		if err != nil {
			return 0, err
		}
	}
	// Where the backup takes the place of what is there, that knows what was leased.
	if err := links.SkipLeased(ctx, filepath.Join(c.Data, linksFile)); err != nil {
		return 0, err
	}
	return links.Count(ctx)
}
