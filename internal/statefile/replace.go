package statefile

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace replaces a file, so that a reader finds the old or the new one, after a power
// cut too. Only its owner may read it, whatever the umask is.
func Replace(name string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return SyncFolder(filepath.Dir(name))
}

// SyncFolder makes the entries of a folder durable: without it a power cut may undo a rename.
func SyncFolder(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
