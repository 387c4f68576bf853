package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"curt/internal/statefile"
)

// Names inside restore.ready.
const (
	keptManifest = "manifest"    // of the backup, to know it again
	asideName    = "put-aside"   // says where what was there goes
	clearedName  = "old-is-gone" // there when all of it has gone
)

// ours returns the names in a data folder that a curt made there. What others put
// there, as lost+found on a volume of its own, is neither an obstacle nor moved.
func ours(data string) (names []string, err error) {
	entries, err := os.ReadDir(data)
	if err != nil {
		return nil, fmt.Errorf("read the data folder: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		stem, _, _ := strings.Cut(name, ".db")
		isDatabase := slices.Contains([]string{"curt", "clicks", "search"}, stem) && stem != name
		if isDatabase || name == logFolder || name == keyFile {
			names = append(names, name)
		}
	}
	return names, nil
}

func keepManifest(folder string, m Manifest) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return mark(folder, keptManifest, text)
}

// mark writes a small file that outlives a power cut.
func mark(folder, name string, text []byte) error {
	f, err := newFile(filepath.Join(folder, name))
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.close()); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return statefile.SyncFolder(folder)
}

// swap puts restore.partial, which is whole, into effect.
func swap(data string, old []string, now time.Time) (aside string, err error) {
	partial := filepath.Join(data, partialFolder)
	if len(old) > 0 {
		aside = "before-restore-" + now.UTC().Format("20060102T150405Z")
		if err := mark(partial, asideName, []byte(aside)); err != nil {
			return "", err
		}
		aside = filepath.Join(data, aside)
	}
	if err := os.Rename(partial, filepath.Join(data, readyFolder)); err != nil {
		return "", fmt.Errorf("restore: %w", err)
	}
	return aside, moveIn(data)
}

// moveIn moves the old files away and the new ones in. It may be interrupted anywhere
// and run again: the old are not looked for after the first of the new is in.
func moveIn(data string) error {
	ready := filepath.Join(data, readyFolder)
	if _, err := os.Lstat(filepath.Join(ready, clearedName)); errors.Is(err, fs.ErrNotExist) {
		if err := putAside(data); err != nil {
			return err
		}
		if err := mark(ready, clearedName, nil); err != nil {
			return err
		}
	} else if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	names, err := ours(ready)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Rename(filepath.Join(ready, name), filepath.Join(data, name)); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	if err := statefile.SyncFolder(data); err != nil {
		return err
	}
	if err := os.RemoveAll(ready); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return statefile.SyncFolder(data)
}

func putAside(data string) error {
	if err := statefile.SyncFolder(data); err != nil { // the name restore.ready
		return err
	}
	name, err := os.ReadFile(filepath.Join(data, readyFolder, asideName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	aside := filepath.Join(data, filepath.Base(string(name)))
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return fmt.Errorf("move the old files aside: %w", err)
	}
	old, err := ours(data)
	for _, name := range old {
		err = errors.Join(err, os.Rename(filepath.Join(data, name), filepath.Join(aside, name)))
	}
	if err = errors.Join(err, statefile.SyncFolder(aside), statefile.SyncFolder(data)); err != nil {
		return fmt.Errorf("move the old files aside: %w", err)
	}
	return nil
}

// resume finishes a restore that was interrupted while the files were moved, whatever
// backup it was of, and reports whether it was of the same as m.
func resume(data string, m Manifest) (same bool, err error) {
	ready := filepath.Join(data, readyFolder)
	text, err := os.ReadFile(filepath.Join(ready, keptManifest))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(ready); err == nil {
			return false, os.RemoveAll(ready) // all had been moved in
		}
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("finish an earlier restore: %w", err)
	}
	want, err := json.Marshal(m)
	if err != nil {
		return false, fmt.Errorf("finish an earlier restore: %w", err)
	}
	if err := moveIn(data); err != nil {
		return false, fmt.Errorf("finish an earlier restore: %w", err)
	}
	return string(text) == string(want), nil
}
