package clicks

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
)

// segmentScanner reads the blocks of one file. It never reads past size, never
// allocates more than one block, and trusts nothing that the file says before its
// checksum held.
type segmentScanner struct {
	file io.ReaderAt
	name string
	size int64
	at   int64
	buf  []byte
}

// next returns the block at s.at and moves behind it; io.EOF at size. After a
// DamageError s.at still points at the damage. Block.At and Next carry offsets only.
func (s *segmentScanner) next() (Block, error) {
	left := s.size - s.at
	if left == 0 {
		return Block{}, io.EOF
	}
	if left < headSize || s.at < 0 {
		return Block{}, s.damage(errTorn)
	}
	if err := s.read(0, headSize); err != nil {
		return Block{}, err
	}
	h, err := readHead(s.buf)
	if err != nil {
		return Block{}, s.damage(err)
	}
	length := headSize + int64(h.size)
	if length > left {
		return Block{}, s.damage(errTorn)
	}
	if err := s.read(headSize, int(length)); err != nil {
		return Block{}, err
	}
	if err := checkBlock(s.buf); err != nil {
		return Block{}, s.damage(err)
	}
	b := Block{
		At: Position{Offset: s.at}, Next: Position{Offset: s.at + length},
		First: EventID{h.instance, h.first}, Count: int(h.count),
		Earliest: h.earliest, Latest: h.latest, Watermark: h.watermark,
		version: h.version, base: h.base, origin: h.origin, records: s.buf[headSize:],
	}
	s.at += length
	return b, nil
}

// read fills buf[from:to] from the file.
func (s *segmentScanner) read(from, to int) error {
	if cap(s.buf) < to {
		s.buf = append(make([]byte, 0, to+to/4), s.buf[:from]...)
	}
	s.buf = s.buf[:to]
	n, err := s.file.ReadAt(s.buf[from:], s.at+int64(from))
	if n == to-from {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return s.damage(errTorn) // shorter than it was said to be
	}
	return fmt.Errorf("read click log %s: %w", s.name, err)
}

func (s *segmentScanner) damage(err error) error {
	return &DamageError{File: s.name, Offset: s.at, Err: err}
}

// Reader walks the blocks of a log in order. It is used by one goroutine; any
// number of Readers may walk one log.
type Reader struct {
	dir  string
	find func(number uint64) (s segment, newest, ok bool)
	pos  Position
	file *os.File
	scan segmentScanner
}

// Read returns a Reader that begins at a position that a Block or a Reader gave.
func (l *Log) Read(from Position) *Reader {
	return &Reader{dir: l.cfg.Dir, pos: from, find: func(number uint64) (segment, bool, bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return findSegment(l.segments, number)
	}}
}

// ReadDir returns a Reader over a folder as it stands now, also beside a running
// process, which may be writing the last block.
func ReadDir(dir string, from Position) (*Reader, error) {
	found, err := listSegments(dir)
	if err != nil {
		return nil, fmt.Errorf("read click log: %w", err)
	}
	return &Reader{dir: dir, pos: from, find: func(number uint64) (segment, bool, bool) {
		return findSegment(found, number)
	}}, nil
}

// findSegment returns the first segment with at least the number.
func findSegment(list []segment, number uint64) (segment, bool, bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].number >= number })
	if i == len(list) {
		return segment{}, false, false
	}
	return list[i], i == len(list)-1, true
}

// Position returns where the next block begins.
func (r *Reader) Position() Position { return r.pos }

// Next returns the next block, or io.EOF when there is none yet. At a damage it
// returns a *DamageError, the same one until Skip. Other errors are the disk's; a
// retry may help. Segments that are gone are passed over.
func (r *Reader) Next() (Block, error) {
	for {
		s, newest, ok := r.find(r.pos.Segment)
		if !ok {
			return Block{}, io.EOF
		}
		if s.number != r.pos.Segment {
			r.pos = Position{Segment: s.number}
		}
		if err := r.open(s); errors.Is(err, fs.ErrNotExist) {
			r.pos = Position{Segment: s.number + 1}
			continue
		} else if err != nil {
			return Block{}, err
		}
		r.scan.size, r.scan.at = s.size, min(r.pos.Offset, s.size) // what was counted may be cut off
		b, err := r.scan.next()
		if errors.Is(err, io.EOF) && !newest {
			r.pos = Position{Segment: s.number + 1}
			continue
		}
		if err != nil {
			return Block{}, err
		}
		b.At, b.Next = r.pos, Position{s.number, r.scan.at}
		r.pos = b.Next
		return b, nil
	}
}

// open makes s the open file.
func (r *Reader) open(s segment) error {
	path := filepath.Join(r.dir, segmentName(s.number))
	if r.file != nil && r.scan.name == path {
		return nil
	}
	r.Close()
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read click log: %w", err)
	}
	r.file = f
	r.scan.file, r.scan.name = f, path
	return nil
}

// Skip passes over the damage that Next found: to the next whole block of the segment, or
// to the next segment. What is appended to the segment afterwards may be passed over with
// it, so that a segment that is still written to is ended before.
func (r *Reader) Skip() {
	if s, _, ok := r.find(r.pos.Segment); ok && s.number == r.pos.Segment && r.file != nil {
		r.scan.size, r.scan.at = s.size, r.pos.Offset
		if follows, err := r.scan.skip(); err == nil && follows {
			r.pos.Offset = r.scan.at
			return
		}
	}
	r.pos = Position{Segment: r.pos.Segment + 1}
}

// Close releases the open file; Next may be called again.
func (r *Reader) Close() {
	if r.file != nil {
		_ = r.file.Close() // only read
		r.file = nil
	}
}
