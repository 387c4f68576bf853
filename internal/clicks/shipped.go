package clicks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// shipped is what a Shipper keeps in its file.
type shipped struct {
	Position Position `json:"position"` // everything before it was delivered
	Instance uint64   `json:"instance"` // of the last block before it; 0 = none
	// Open are instances that may have promised something, and were not told to have ended. One
	// that was killed before its first click is known from nothing else.
	Open []uint64 `json:"open,omitempty"`
}

// maxOpen bounds them: of starts one after the other that come to nothing.
const maxOpen = 256

// begin notes an instance that is about to promise something.
func (s *shipped) begin(instance uint64) {
	s.Open = append(slices.DeleteFunc(s.Open, func(i uint64) bool { return i == instance }), instance)
	s.Open = s.Open[max(0, len(s.Open)-maxOpen):]
}

// readShipped reads the file; one that is not there is the beginning. Damage is an error: all
// that the log holds would be sent again.
func readShipped(name string) (s shipped, err error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return s, fmt.Errorf("read the place in the click log from %s (remove it to send what the log holds again): %w", name, err)
	}
	return s, nil
}

// write replaces the file.
func (s shipped) write(name string) error {
	b, err := json.Marshal(s)
	if err == nil {
		err = replaceFile(name, b)
	}
	if err != nil {
		return fmt.Errorf("write the place in the click log: %w", err)
	}
	return nil
}

// replaceFile replaces a file, so that a reader finds the old or the new one, after a power
// cut too.
func replaceFile(name string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}
