package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"curt/internal/config"
)

// errLocked: another process has the data folder.
var errLocked = errors.New("another curt uses this folder")

// LockFolder keeps every server, and every command that needs the folder to itself, away
// from a data folder until the file is closed. It makes the folder if it is not there.
func LockFolder(folder string) (io.Closer, error) {
	f, err := lockFolder(folder)
	if err != nil {
		return nil, err // no file in the interface
	}
	return f, nil
}

// lockFolder takes the exclusive lock of a data folder, making the folder if it is
// not there. The kernel gives the lock back when the process dies, however it
// dies. Closing the file ends the lock.
func lockFolder(folder string) (*os.File, error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, unusable(folder, fmt.Errorf("make the data folder: %w", err))
	}
	name := filepath.Join(folder, "lock")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, unusable(folder, fmt.Errorf("open the lock: %w", err))
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errLocked
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", folder, err), f.Close())
	}
	return f, nil
}

// unusable makes a wrong setting of an error about the data folder, unless the disk
// is to blame.
func unusable(folder string, err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EIO) || errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return err
	}
	return &config.Error{Setting: "CURT_DATA", Value: folder, Want: err.Error()}
}
