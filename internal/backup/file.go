package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// syncEvery is how much of a new file may wait for its fsync: other programs' fsyncs
// may have to wait for it.
const syncEvery = 16 << 20

// file is a new file that its owner alone may read.
type file struct {
	*os.File
	unsynced int
}

func newFile(name string) (*file, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("copy: %w", err)
	}
	return &file{File: f}, nil
}

// Write implements io.Writer.
func (f *file) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	if f.unsynced += n; err == nil && f.unsynced >= syncEvery {
		f.unsynced = 0
		err = f.Sync()
	}
	return n, err
}

// close sees to it that the file is on the disk.
func (f *file) close() error { return errors.Join(f.Sync(), f.Close()) }

// apart refuses a backup and a data folder of which one is, or lies in, the other: a
// restore would move one into the other, and a backup go with the folder that it is for.
// One that is not there yet is where its name says.
func apart(data, backup string) error {
	a, err := resolved(data)
	if err != nil {
		return err
	}
	b, err := resolved(backup)
	if err != nil {
		return err
	}
	if within(a, b) || within(b, a) {
		return fmt.Errorf("the backup %s and the data folder %s must not contain each other", backup, data)
	}
	return nil
}

func within(name, folder string) bool {
	rest, err := filepath.Rel(folder, name)
	return err == nil && filepath.IsLocal(rest)
}

// resolved follows the links of the part of a name that is there.
func resolved(name string) (string, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("resolve: %w", err)
	}
	whole, err := filepath.EvalSymlinks(name)
	if !errors.Is(err, fs.ErrNotExist) || name == filepath.Dir(name) {
		return whole, err
	}
	parent, err := resolved(filepath.Dir(name))
	return filepath.Join(parent, filepath.Base(name)), err
}
