package abuse

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// edition is one version of a list.
type edition struct {
	digests
	reach    reach
	contents contents
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

// syntax finds the entries of a list. What it does with the same bytes is always the
// same.
type syntax func(r io.Reader, keep func(*entry) error) (contents, error)

// version has one version of a file read, and returns its stamp. The error is ErrFile,
// errMoving or that of read.
func version(path string, read func(f io.ReadSeeker, size int64) error) (of stamp, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe does not keep us waiting
	if err != nil {
		return stamp{}, fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer f.Close() //nolint:errcheck // only read
	if of, err = stampOf(f.Stat()); err != nil {
		return of, err
	}
	err = read(f, of.size)
	if after, errAfter := stampOf(f.Stat()); errAfter == nil && !after.same(of) {
		return of, errMoving
	}
	return of, err
}

// read makes an edition of a file, with room for so many entries. It reads the file
// twice, once to count and once to keep, so that nothing but the edition takes memory.
func read(path string, parse syntax, s *seeds, room int) (e *edition, of stamp, err error) {
	of, err = version(path, func(f io.ReadSeeker, size int64) (err error) {
		e, err = twice(f, size, parse, s, room)
		return err
	})
	return e, of, err
}

// shortLine is what a line takes at the least, nearly always.
const shortLine = 16

func twice(f io.ReadSeeker, size int64, parse syntax, s *seeds, room int) (*edition, error) {
	e := &edition{}
	count := newTally(min(int64(room), size/shortLine+1))
	var err error
	e.contents, err = parse(io.LimitReader(f, maxFile), func(found *entry) error {
		if count.n >= room {
			return ErrTooMany
		}
		count.add(s.digest(found.kind, found.text))
		e.reach.add(found)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	build := count.builder()
	if _, err = parse(io.LimitReader(f, maxFile), func(found *entry) error {
		if !build.add(s.digest(found.kind, found.text)) {
			return errMoving
		}
		return nil
	}); err != nil {
		return nil, err
	}
	set, ok := build.set()
	if !ok {
		return nil, errMoving
	}
	e.digests = set
	return e, nil
}
