package statefile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Identity says which file it was written to, and on which machine.
//
// A copy is another file: it has another inode, or on another file system perhaps the same
// and another time of birth, which nobody can set. Device numbers are given away anew at
// each boot and each mount, so that they count only where the file system tells no time of
// birth. A machine without an id, such as most containers, is taken for any. A snapshot of
// a disk or a whole machine is the same in all of this, and cannot be told from what it is of.
type Identity struct {
	Machine string `json:"machine,omitempty"` // a digest of /etc/machine-id; "" = it has none
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`
	Born    int64  `json:"born,omitempty"` // nanoseconds since 1970; 0 = the file system does not tell
}

// Same reports whether both are the same file on the same machine, as far as can be told.
func (i Identity) Same(o Identity) bool {
	switch {
	case i.Machine != "" && o.Machine != "" && i.Machine != o.Machine:
		return false
	case i.Inode != o.Inode:
		return false
	case i.Born != 0 && o.Born != 0:
		return i.Born == o.Born
	}
	return i.Device == o.Device
}

// Here returns the identity of the file of a name, as of now.
func Here(name string) (Identity, error) {
	f, err := os.Open(name)
	if err != nil {
		return Identity{}, fmt.Errorf("identify: %w", err)
	}
	defer f.Close() //nolint:errcheck // only asked
	return identify(f)
}

func identify(f *os.File) (Identity, error) {
	info, err := f.Stat()
	if err != nil {
		return Identity{}, fmt.Errorf("identify: %w", err)
	}
	i := Identity{Machine: machine(), Born: born(f)}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		i.Device, i.Inode = uint64(st.Dev), st.Ino //nolint:unconvert // of other widths on other systems
	}
	return i, nil
}

// machine returns a digest of the machine's id: the id itself should not be told
// (machine-id(5)), and a backup of a folder may be read by others.
func machine() string {
	id, err := os.ReadFile("/etc/machine-id")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	id = bytes.TrimSpace(id)
	if len(id) == 0 || string(id) == "uninitialized" {
		return ""
	}
	sum := sha256.Sum256(append([]byte("curt data folder\n"), id...))
	return hex.EncodeToString(sum[:16])
}
