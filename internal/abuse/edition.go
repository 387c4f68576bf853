package abuse

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"
)

// edition is one version of a list: the digests of its hosts, in order. 64 bits are
// enough: among ten million hosts one name in 10^12 is mistaken for a listed one, and
// the key of the digests differs in each process.
type edition struct {
	digests []uint64
	strange strange // lines that forbid nothing
}

func (e *edition) has(digest uint64) bool {
	_, found := slices.BinarySearch(e.digests, digest)
	return found
}

// stamp tells versions of a file apart.
type stamp struct {
	size    int64
	changed time.Time
	inode   fs.FileInfo
}

func (s stamp) same(o stamp) bool {
	return s.inode != nil && o.inode != nil && s.size == o.size && s.changed.Equal(o.changed) && os.SameFile(s.inode, o.inode)
}

// stampOf refuses what is no file: a read must never wait for somebody to write.
func stampOf(info fs.FileInfo, err error) (stamp, error) {
	switch {
	case err != nil:
		return stamp{}, fmt.Errorf("%w: %w", ErrFile, err)
	case !info.Mode().IsRegular():
		return stamp{}, fmt.Errorf("%w: %s is no regular file", ErrFile, info.Name())
	case info.Size() > maxFile:
		return stamp{}, fmt.Errorf("%w: %s is larger than 1 GiB", ErrFile, info.Name())
	}
	return stamp{info.Size(), info.ModTime(), info}, nil
}

// stampOfPath follows links, so that an exchanged one is a change.
func stampOfPath(path string) (stamp, error) { return stampOf(os.Stat(path)) }

// errMoving: the file changed while it was read.
var errMoving = errors.New("the file changed while it was read")

// read makes an edition of a file, with room for so many hosts.
func read(path string, digest func(string) uint64, room int) (e *edition, of stamp, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe does not keep us waiting
	if err != nil {
		return nil, stamp{}, fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer f.Close() //nolint:errcheck // only read
	if of, err = stampOf(f.Stat()); err != nil {
		return nil, of, err
	}
	// A line is rarely shorter than 16 bytes; what is too little grows, what is too
	// much is given back.
	e = &edition{digests: make([]uint64, 0, min(int64(room), of.size/16+1))}
	e.strange, err = parse(io.LimitReader(f, maxFile), func(host string) error {
		if len(e.digests) >= room {
			return ErrTooMany
		}
		e.digests = append(e.digests, digest(host))
		return nil
	})
	if after, errAfter := stampOf(f.Stat()); errAfter == nil && !after.same(of) {
		return nil, of, errMoving
	}
	if err != nil {
		return nil, of, err
	}
	slices.Sort(e.digests)
	e.digests = slices.Compact(e.digests)
	if len(e.digests) < cap(e.digests)/4*3 {
		e.digests = slices.Clone(e.digests)
	}
	return e, of, nil
}
