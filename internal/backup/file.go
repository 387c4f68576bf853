package backup

import (
	"errors"
	"fmt"
	"os"
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

// syncFolder sees to it that the names in a folder are on the disk.
func syncFolder(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", name, err)
	}
	return nil
}
