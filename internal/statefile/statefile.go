// Package statefile is the small file beside curt.db that says what must not be forgotten
// when curt.db or its write-ahead log is: which ids were leased, whether a process has the
// store, and which folder this is.
//
// The file has two slots of a block each, which are written in turn, in place and synced:
// a write that a power cut tears leaves the other slot, and the file stays the one that it
// is, whose number and time of birth are part of what it says. Each slot is a line of JSON
// behind its checksum.
//
// Read identity.go for what tells a copy from the folder that was copied. The package
// imports nothing of ours.
package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// slotSize is a block: a disk that tears a write leaves the other slot alone.
const slotSize = 4096

// ErrDamaged means that neither slot holds.
var ErrDamaged = errors.New("damaged")

// State is what the file says.
type State struct {
	Sequence uint64 `json:"sequence"` // of the write; the higher slot counts

	// Open: a process has the store, or had it when it died.
	Open bool `json:"open"`
	// Loose: that process does not have each commit on the disk before the next, or goes on
	// behind what another has left in the write-ahead log, so that the log's end says
	// nothing of what was confirmed.
	Loose bool `json:"loose,omitempty"`
	// Generation is in the store, too, which had it on the disk first. A process gives it a
	// new one when it opens the store and when it has emptied the write-ahead log.
	Generation int64 `json:"generation"`
	// Leases is the lowest id of each counter that was never leased.
	Leases map[string]uint64 `json:"leases"`

	Identity Identity `json:"identity"`
}

// Read returns what a file says; the error wraps [fs.ErrNotExist] or ErrDamaged.
func Read(name string) (State, error) {
	f, err := os.Open(name)
	if err != nil {
		return State{}, fmt.Errorf("read: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	return read(f)
}

func read(f *os.File) (State, error) {
	both := make([]byte, 2*slotSize)
	n, err := f.ReadAt(both, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return State{}, fmt.Errorf("read: %w", err)
	}
	clear(both[n:])
	var newest State
	found := false
	for _, slot := range [][]byte{both[:slotSize], both[slotSize:]} {
		if s, ok := parse(slot); ok && (!found || s.Sequence > newest.Sequence) {
			newest, found = s, true
		}
	}
	if !found {
		return State{}, fmt.Errorf("%s: %w", f.Name(), ErrDamaged)
	}
	return newest, nil
}

// sumDigits is the length of a slot's checksum, behind which stands a space.
const sumDigits = 8

func parse(slot []byte) (s State, ok bool) {
	sum, err := strconv.ParseUint(string(slot[:sumDigits]), 16, 32)
	if err != nil || uint32(sum) != crc32.Checksum(slot[sumDigits:], castagnoli()) {
		return s, false
	}
	return s, json.Unmarshal(slot[sumDigits:], &s) == nil
}

// format fills a slot: spaces behind the JSON, and a line's end.
func format(s State) ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	rest := fmt.Appendf(nil, " %-*s\n", slotSize-sumDigits-2, text)
	if len(rest) != slotSize-sumDigits {
		return nil, fmt.Errorf("write: %d bytes do not fit a slot", len(text))
	}
	return append(fmt.Appendf(nil, "%08x", crc32.Checksum(rest, castagnoli())), rest...), nil
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// File is the state of a store that this process has. It is safe for many goroutines.
type File struct {
	name string

	mu   sync.Mutex
	last State // guarded by mu
}

// Begin writes what a process that has just opened the store knows, into the file that is
// there or a new one, and with it where that file is.
func Begin(name string, s State) (*File, error) {
	f := &File{name: name, last: s}
	err := f.Update(func(now *State) {
		sequence := now.Sequence
		*now = s
		now.Sequence, now.Identity = sequence, Identity{} // of the file that it is written to
	})
	return f, err
}

// Update changes the state, which is on the disk when it returns nil. Once in 10,000 ids
// it opens and reads the file: somebody may have deleted it, and leases that another
// process wrote there must stay.
func (f *File) Update(change func(*State)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.update(change); err != nil {
		return fmt.Errorf("write %s: %w", f.name, err)
	}
	return nil
}

func (f *File) update(change func(*State)) error {
	file, err := os.OpenFile(f.name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return f.create(change)
	}
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // write has synced it
	now, err := read(file)
	if errors.Is(err, ErrDamaged) {
		return f.create(change)
	}
	if err != nil {
		return err
	}
	leases := raised(now.Leases, f.last.Leases)
	now.Leases = maps.Clone(leases)
	change(&now)
	now.Leases = raised(leases, now.Leases)
	return f.write(file, now)
}

// create makes a whole file before it has the name.
func (f *File) create(change func(*State)) error {
	now := f.last
	now.Leases = raised(nil, now.Leases)
	change(&now)
	now.Identity = Identity{}
	file, err := os.OpenFile(f.name+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	err = f.write(file, now)
	if err == nil {
		err = f.write(file, f.last) // so that both slots have their room on the disk
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(f.name+".new"))
	}
	if err := os.Rename(f.name+".new", f.name); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(f.name))
}

// write fills the slot that is older.
func (f *File) write(file *os.File, s State) error {
	s.Sequence++
	if s.Identity == (Identity{}) {
		here, err := identify(file)
		if err != nil {
			return err
		}
		s.Identity = here
	}
	slot, err := format(s)
	if err != nil {
		return err
	}
	if _, err := file.WriteAt(slot, int64(s.Sequence%2)*slotSize); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	f.last = s
	return nil
}

// raised returns the higher of both for each counter.
func raised(a, b map[string]uint64) map[string]uint64 {
	all := maps.Clone(a)
	if all == nil {
		all = make(map[string]uint64, len(b))
	}
	for counter, next := range b {
		all[counter] = max(all[counter], next)
	}
	return all
}
