package sqlitedb

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"curt/internal/walfile"
)

// ErrCut means that a database file is shorter than its header says.
var ErrCut = errors.New("is truncated")

// CheckLength compares the length of a file that nobody has open with what its header says.
// While frames are in the write-ahead log, a kill may have left the file shorter: SQLite
// brings them in. What is no database is left to SQLite, which says so.
//
// The header: https://www.sqlite.org/fileformat2.html#the_database_header
func CheckLength(path string) error {
	size, pages, err := lengths(path)
	if err != nil || size >= pages {
		return err
	}
	log, err := walfile.Examine(path)
	if err != nil || log.Frames > 0 {
		return err
	}
	return fmt.Errorf("%s %w: %d of its %d bytes are missing", path, ErrCut, pages-size, pages)
}

// lengths returns how long a file is, and how long its header says; 0 where it does not say.
func lengths(path string) (size, pages int64, err error) {
	const headerSize = 100
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, fmt.Errorf("check the length: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return 0, 0, fmt.Errorf("check the length: %w", err)
	}
	head := make([]byte, headerSize)
	_, err = io.ReadFull(f, head)
	be := binary.BigEndian
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return info.Size(), 0, nil
	case err != nil:
		return 0, 0, fmt.Errorf("check the length: %w", err)
	case !bytes.HasPrefix(head, []byte("SQLite format 3\x00")), be.Uint32(head[24:]) != be.Uint32(head[92:]): // written by what does not keep the number of pages
		return info.Size(), 0, nil
	}
	page := cmp.Or(int64(be.Uint16(head[16:]))&^1, 65536) // 1 stands for 65536
	return info.Size(), page * int64(be.Uint32(head[28:])), nil
}
