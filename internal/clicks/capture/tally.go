package capture

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"curt/internal/clicks/clicklog"
	"curt/internal/statefile"
)

// A Tally counts where a killed process leaves it behind: how many clicks the Ring took, and how
// many of them Capture wrote. The next process finds the difference, which are the clicks
// that the kill took (docs/decisions/0039).
//
// The counters are in a page of memory that is a file of no disk: a redirect must never wait
// for one, as a write to a page of a file does while that is written back. Such a page
// goes with the machine, and with the container where that has memory files of its own.
// Then the loss is Unknown.
type Tally struct {
	state  string // the file in the data folder
	page   string // the file in memory
	memory []byte
	ring   *Ring
	shards int
}

// TallyConfig says what is counted and where that is noted.
type TallyConfig struct {
	State   string   // a file of the data folder: what the next process looks for
	Memory  string   // a folder of files in memory; "" = that of the system
	Capture *Capture // which does not run yet, and whose Ring is not recorded to
}

// Loss is what the end of the process before cost.
type Loss struct {
	Killed  bool   // it did not end by itself
	Clicks  uint64 // which the ring had taken, and which are not in the log
	Unknown bool   // how many is unknown
	Why     string // that is so
}

// TallyFile is the State in a data folder.
func TallyFile(data string) string { return filepath.Join(data, "clicks.life") }

// tallyState is what is noted in the data folder.
type tallyState struct {
	Instance uint64 `json:"instance"`
	Boot     string `json:"boot"` // of the machine
	Page     string `json:"page"`
	// Where the folder is: a copy of it says nothing of the process that it was copied from.
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// The page, in lines of their own, so that no two processors write to one: magic and instance,
// how many clicks Capture wrote, and for each shard of the ring how many it took.
const (
	pagePrefix = "curt-"
	tallyMagic = "CURTCNT1"
	tallyLine  = 64
	tallySize  = 16 << 10
	maxShards  = tallySize/tallyLine - 2
)

// OpenTally returns what the end of the process before cost, and counts from now on. Where
// that cannot be counted the Tally is nil, which is usable, and the error says why; what
// was found is right all the same.
func OpenTally(c TallyConfig) (*Tally, Loss, error) {
	if c.Memory == "" {
		c.Memory = memoryFiles
	}
	before, taken := taken(c.State, c.Capture.cfg.Log.Dir())
	ring := c.Capture.cfg.Ring
	t := &Tally{state: c.State, ring: ring, shards: len(ring.shards)}
	err := t.begin(c)
	if err != nil {
		t, err = nil, errors.Join(fmt.Errorf("track unwritten clicks: %w", err), removed(c.State))
	}
	c.Capture.tally = t
	if filepath.Dir(before.Page) == c.Memory && strings.HasPrefix(filepath.Base(before.Page), pagePrefix) {
		err = errors.Join(err, removed(before.Page))
	}
	return t, taken, err
}

// begin makes the page, has the ring count there, and notes it.
func (t *Tally) begin(c TallyConfig) error {
	if t.shards > maxShards {
		return fmt.Errorf("%d shards are more than %d", t.shards, maxShards)
	}
	s := tallyState{Instance: c.Capture.instance}
	var err error
	if s.Boot, s.Device, s.Inode, err = whereabouts(filepath.Dir(c.State)); err != nil {
		return err
	}
	var name [12]byte
	_, _ = rand.Read(name[:]) // never fails; the name cannot be guessed
	t.page = filepath.Join(c.Memory, pagePrefix+hex.EncodeToString(name[:]))
	if t.memory, err = newPage(t.page, tallySize); err != nil {
		return err
	}
	copy(t.memory, tallyMagic)
	binary.LittleEndian.PutUint64(t.memory[8:], s.Instance)
	s.Page = t.page
	b, err := json.Marshal(s)
	if err == nil {
		err = statefile.Replace(c.State, b)
	}
	if err != nil {
		return errors.Join(err, freePage(t.memory), removed(t.page))
	}
	for i := range t.shards {
		t.ring.shards[i].count = counter(t.memory, 2+i)
	}
	return nil
}

// written notes how many clicks are in the log. It is called by one goroutine.
func (t *Tally) written(n uint64) {
	if t != nil {
		atomic.StoreUint64(counter(t.memory, 1), n)
	}
}

// Close ends the counting once the last Record has returned. What was taken and not written, such
// as on a full disk, is left for the next process to tell.
func (t *Tally) Close() error {
	if t == nil || t.memory == nil {
		return nil
	}
	all := atomic.LoadUint64(counter(t.memory, 1)) == t.ring.Recorded()
	for i := range t.shards {
		s := &t.ring.shards[i]
		s.mu.Lock()
		s.own = *s.count
		s.count = &s.own
		s.mu.Unlock()
	}
	err := freePage(t.memory)
	t.memory = nil
	if all {
		err = errors.Join(err, removed(t.state), removed(t.page))
	}
	return err
}

// LossOf returns what the next start on a data folder will find that the end of the process
// before cost. No process may run on it. log is the folder of the click log.
func LossOf(state, log string) Loss {
	_, t := taken(state, log)
	return t
}

// taken reads what the process before left.
func taken(state, log string) (s tallyState, t Loss) {
	unknown := func(format string, args ...any) (tallyState, Loss) {
		return s, Loss{Killed: true, Unknown: true, Why: fmt.Sprintf(format, args...)}
	}
	b, err := os.ReadFile(state)
	if errors.Is(err, fs.ErrNotExist) {
		return s, Loss{}
	}
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return unknown("%s cannot be read: %v", state, err)
	}
	boot, device, inode, err := whereabouts(filepath.Dir(state))
	switch {
	case err != nil:
		return unknown("%v", err)
	case device != s.Device || inode != s.Inode: // a copy: the page is that of another process
		return tallyState{}, Loss{}
	case boot != s.Boot:
		return unknown("the machine restarted, which cleared the count in its memory")
	}
	page, err := readPage(s.Page, tallySize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unknown("the count in memory is gone, as after a container restart")
	case err != nil:
		return unknown("%v", err)
	case string(page[:8]) != tallyMagic || binary.LittleEndian.Uint64(page[8:]) != s.Instance:
		return unknown("%s belongs to another process", s.Page)
	}
	var recorded uint64
	for i := range maxShards {
		recorded += binary.LittleEndian.Uint64(page[(2+i)*tallyLine:])
	}
	written := binary.LittleEndian.Uint64(page[tallyLine:])
	if recorded > written { // it may have died between the write and the note of it
		written = max(written, clicklog.LastSequence(log, s.Instance))
	}
	return s, Loss{Killed: true, Clicks: recorded - min(written, recorded)}
}

func removed(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
