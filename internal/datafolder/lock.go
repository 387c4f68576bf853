// Package datafolder knows what is in a data folder: which process has it locked, whether its
// links are here or in a database, and whether something of them was lost. The server, the check
// of settings, doctor and the commands that work on a folder share it.
package datafolder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"curt/internal/config"
)

// errLocked: another process has the data folder.
var errLocked = errors.New("another curt is using this folder")

// Lock keeps every server, and every command that needs the folder to itself, away from a data
// folder until the lock is closed. It makes the folder if it is not there. The kernel releases the
// lock when the process dies, however it dies.
func Lock(folder string) (io.Closer, error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, unusable(folder, fmt.Errorf("create the data folder: %w", err))
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

// TryLock is Lock, where ok is false if another process has the folder.
func TryLock(folder string) (lock io.Closer, ok bool, err error) {
	lock, err = Lock(folder)
	if errors.Is(err, errLocked) {
		return nil, false, nil
	}
	return lock, err == nil, err
}

// unusable makes a wrong setting of an error about the data folder, unless the disk
// is to blame.
func unusable(folder string, err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EIO) || errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return err
	}
	return &config.Error{Setting: "CURT_DATA", Value: folder, Want: err.Error()}
}

// Held reports whether a server uses a data folder. It asks the lock for a moment; a
// folder that no server has used has none.
func Held(folder string) (bool, error) {
	if _, err := os.Stat(filepath.Join(folder, "lock")); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	f, err := Lock(folder)
	if errors.Is(err, errLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, f.Close()
}
