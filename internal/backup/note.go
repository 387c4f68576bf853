package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// noteFile stands in a data folder, and says which backup of it was taken last. It is
// part of no backup: what is restored elsewhere was not backed up there.
const noteFile = "last-backup.json"

// ErrUnnoted means that a backup is whole, and that the data folder could not note it.
var ErrUnnoted = errors.New("the backup is complete, but could not be recorded in the data folder")

// Note is what a data folder says of its last backup.
type Note struct {
	Taken time.Time `json:"taken"` // the moment that the backup shows, UTC
	Bytes int64     `json:"bytes"` // of its files
}

// note replaces the note of a data folder as a whole. It is not synced: a note that a power
// cut takes is missed until the next backup.
func note(data string, m *Manifest) error {
	text, err := json.Marshal(Note{Taken: m.Taken, Bytes: m.Bytes()})
	if err == nil {
		name := filepath.Join(data, noteFile)
		if err = os.WriteFile(name+".new", append(text, '\n'), 0o600); err == nil {
			err = os.Rename(name+".new", name)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnnoted, err)
	}
	return nil
}

// Last returns what a data folder says of its last backup; the zero Note where it says
// nothing: none was taken, not by Take, or what stands there cannot be read.
func Last(data string) Note {
	var n Note
	text, err := readSmall(filepath.Join(data, noteFile))
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		return Note{}
	}
	return n
}
