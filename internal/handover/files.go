package handover

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"curt/internal/statefile"
)

// The files in the data folder.
const (
	lockFile   = "move.lock"
	askFile    = "move.ask"
	answerFile = "move.answer"
	markFile   = "moved"
)

// Mark says where the links of a data folder are since when.
type Mark struct {
	To     string    `json:"to"` // the database, without its secrets
	At     time.Time `json:"at"`
	Of     []byte    `json:"of"` // which links, as the database knows them
	Links  int64     `json:"links"`
	Digest string    `json:"digest"` // of all that was compared
	Ended  bool      `json:"ended"`  // the last clicks are there as well, and the old files are aside
}

// ask is what a mover wants of the server.
type ask struct {
	Token  string `json:"token"` // of this freeze
	Switch *Mark  `json:"switch,omitempty"`
}

// state is how a server stands to the ask with a token.
type state string

const (
	frozen state = "frozen"
	thawed state = "thawed"
	moved  state = "moved"
)

type answer struct {
	Token string `json:"token"`
	State state  `json:"state"`
	Why   string `json:"why,omitempty"` // it is not frozen
}

// Moved returns where the links of a folder are; nil = nowhere else.
func Moved(folder string) (*Mark, error) {
	var m Mark
	err := read(filepath.Join(folder, markFile), &m)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read where the links were moved to: %w", err)
	}
	return &m, nil
}

// WriteMark says durably where the links of a folder are. Only who has the folder's lock calls it.
func WriteMark(folder string, m Mark) error {
	err := write(filepath.Join(folder, markFile), m, true)
	if err == nil {
		err = statefile.SyncFolder(folder)
	}
	if err != nil {
		return fmt.Errorf("write where the links were moved to: %w", err)
	}
	return nil
}

// write replaces a file whole or not at all.
func write(name string, v any, durable bool) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	f, err := os.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name+".new"))
	}
	return os.Rename(name+".new", name)
}

func read(name string, v any) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return nil
}

// held reports whether a mover lives. It asks the lock for a moment.
func held(folder string) bool {
	f, err := os.Open(filepath.Join(folder, lockFile))
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only locked
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}
