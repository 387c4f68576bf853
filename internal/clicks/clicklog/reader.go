package clicklog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sort"
	"time"

	"curt/internal/clicks"
)

// Scanner reads the blocks of one segment. It never reads past its end, never allocates more
// than one block, and trusts nothing that the file says before its checksum held.
type Scanner struct {
	file   io.ReaderAt
	name   string
	number uint64 // of the segment
	size   int64
	at     int64
	buf    []byte
}

// OpenSegment returns a Scanner that begins with the segment's first block.
func OpenSegment(dir string, segment Segment) (*Scanner, error) {
	name := filepath.Join(dir, SegmentName(segment.Number))
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read click log: %w", err)
	}
	return &Scanner{file: f, name: name, number: segment.Number, size: segment.Size}, nil
}

// Close closes the file.
func (s *Scanner) Close() {
	if f, ok := s.file.(io.Closer); ok {
		_ = f.Close() // only read
	}
}

// Range has the Scanner read the blocks between two offsets.
func (s *Scanner) Range(at, end int64) { s.at, s.size = at, end }

// Next returns the next block, which is valid until the next call; io.EOF at the end. After a
// DamageError the Scanner stays at the damage.
func (s *Scanner) Next() (Block, error) {
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
		At: Position{s.number, s.at}, Next: Position{s.number, s.at + length},
		First: clicks.EventID{Instance: h.instance, Sequence: h.first}, Count: int(h.count),
		Earliest: h.earliest, Latest: h.latest, Watermark: h.watermark, Origin: h.origin,
		version: h.version, base: h.base, records: s.buf[headSize:],
	}
	s.at += length
	return b, nil
}

// NextGood is Next, but passes over damage, which damaged is called with; io.EOF where no
// whole block follows.
func (s *Scanner) NextGood(damaged func(*DamageError)) (Block, error) {
	for {
		b, err := s.Next()
		damage, ok := errors.AsType[*DamageError](err)
		if !ok {
			return b, err
		}
		damaged(damage)
		if follows, err := s.skip(); err != nil {
			return Block{}, err
		} else if !follows {
			return Block{}, io.EOF
		}
	}
}

// read fills buf[from:to] from the file.
func (s *Scanner) read(from, to int) error {
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

func (s *Scanner) damage(err error) error {
	return &DamageError{File: s.name, Offset: s.at, Err: err}
}

// Reader walks the blocks of a log in order. It is used by one goroutine; any
// number of Readers may walk one log.
type Reader struct {
	dir  string
	log  *Log      // whose segments are read; nil = list
	list []Segment // of a folder, by number
	pos  Position
	scan *Scanner // of the open file; nil = none
}

// Read returns a Reader that begins at a position that a Block or a Reader gave.
func (l *Log) Read(from Position) *Reader {
	return &Reader{dir: l.cfg.Dir, log: l, pos: from}
}

// ReadDir returns a Reader over a folder as it stands now, also beside a running
// process, which may be writing the last block.
func ReadDir(dir string, from Position) (*Reader, error) {
	found, err := listSegments(dir)
	if err != nil {
		return nil, fmt.Errorf("read click log: %w", err)
	}
	return &Reader{dir: dir, list: found, pos: from}, nil
}

// find returns the first segment that is not before the position, and whether it is the newest.
func (r *Reader) find() (s Segment, newest, ok bool) {
	list := r.list
	if r.log != nil {
		r.log.mu.Lock()
		defer r.log.mu.Unlock()
		list = r.log.segments
	}
	i := sort.Search(len(list), func(i int) bool { return list[i].Number >= r.pos.Segment })
	if i == len(list) {
		return Segment{}, false, false
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
		s, newest, ok := r.find()
		if !ok {
			return Block{}, io.EOF
		}
		if s.Number != r.pos.Segment {
			r.pos = Position{Segment: s.Number}
		}
		if err := r.open(s); errors.Is(err, fs.ErrNotExist) {
			r.pos = Position{Segment: s.Number + 1}
			continue
		} else if err != nil {
			return Block{}, err
		}
		r.scan.Range(min(r.pos.Offset, s.Size), s.Size) // what was counted may be cut off
		b, err := r.scan.Next()
		if errors.Is(err, io.EOF) && !newest {
			r.pos = Position{Segment: s.Number + 1}
			continue
		}
		if err != nil {
			return Block{}, err
		}
		b.At = r.pos
		r.pos = b.Next
		return b, nil
	}
}

// NextGood is Next, but passes over damage, which damaged is called with.
func (r *Reader) NextGood(damaged func(*DamageError)) (Block, error) {
	for {
		b, err := r.Next()
		damage, ok := errors.AsType[*DamageError](err)
		if !ok {
			return b, err
		}
		damaged(damage)
		r.Skip()
	}
}

// open has the Scanner read s.
func (r *Reader) open(s Segment) error {
	if r.scan != nil && r.scan.number == s.Number {
		return nil
	}
	r.Close()
	scan, err := OpenSegment(r.dir, s)
	if err != nil {
		return err
	}
	r.scan = scan
	return nil
}

// Skip passes over the damage that Next found: to the next whole block of the segment, or
// to the next segment. In a log that is open the damage is counted, and a segment that is
// still written to is ended first, because what is appended to it later may be passed over, too.
func (r *Reader) Skip() {
	if r.log != nil {
		r.log.endSegment(r.pos.Segment)
		r.log.NoteDamage(r.pos)
	}
	if s, _, ok := r.find(); ok && s.Number == r.pos.Segment && r.scan != nil {
		r.scan.Range(r.pos.Offset, s.Size)
		if follows, err := r.scan.skip(); err == nil && follows {
			r.pos.Offset = r.scan.at
			return
		}
	}
	r.pos = Position{Segment: r.pos.Segment + 1}
}

// Close releases the open file; Next may be called again.
func (r *Reader) Close() {
	if r.scan != nil {
		r.scan.Close()
		r.scan = nil
	}
}

// DamageError says where a segment cannot be read: a block that lies there whole and has
// another checksum, bytes that begin no block, or a file that ends within one. What is
// before it is good, and so may be what is behind it: see [Reader.Skip].
type DamageError struct {
	File   string
	Offset int64
	Err    error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("click log %s is damaged at offset %d: %v", e.File, e.Offset, e.Err)
}

func (e *DamageError) Unwrap() error { return e.Err }

// searchStep is how much is read at once in search of a block.
const searchStep = 256 << 10

// skip moves s from a damage to the next whole block and reports whether there is one;
// without one s stays. What visitors sent is not taken for a block: the last byte of a
// size is zero, which no text of a request holds, and the checksum of a block of others'
// records, which would have to follow, cannot be known beforehand.
func (s *Scanner) skip() (bool, error) {
	damage := s.at
	window := make([]byte, min(searchStep, max(s.size-damage, 0)))
	for from := damage + 1; from+headSize <= s.size; {
		part := window[:min(int64(len(window)), s.size-from)]
		n, err := s.file.ReadAt(part, from)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, fmt.Errorf("read click log %s: %w", s.name, err)
		}
		if n < headSize {
			break // shorter than it was said to be
		}
		for i := 0; ; i++ {
			next := bytes.Index(part[i:n], []byte(magic))
			if next < 0 {
				break
			}
			i += next
			s.at = from + int64(i)
			_, err := s.Next()
			if err == nil {
				s.at = from + int64(i)
				return true, nil
			}
			s.at = damage
			if !isDamage(err) {
				return false, err
			}
		}
		from += int64(n - len(magic) + 1)
	}
	return false, nil
}

func isDamage(err error) bool {
	_, ok := errors.AsType[*DamageError](err)
	return ok
}

// segmentEnd reads a segment that may have been written to when its machine died, and
// returns where it ends: at its size, or before a torn end. Everything else that cannot
// be read is a damage and stays. synced is an offset before which all had reached the
// disk once, so that nothing before it can be torn.
func segmentEnd(f io.ReaderAt, name string, size, synced int64) (end int64, damages []*DamageError, err error) {
	s := Scanner{file: f, name: name, size: size}
	for {
		_, err := s.Next()
		if errors.Is(err, io.EOF) {
			return size, damages, nil
		}
		damage, ok := errors.AsType[*DamageError](err)
		if !ok && err != nil {
			return 0, nil, err
		}
		if err == nil {
			continue
		}
		follows, err := s.skip()
		if err != nil {
			return 0, nil, err
		}
		if !follows && s.at >= synced {
			torn := errors.Is(damage, errTorn)
			if !torn {
				torn, err = unwritten(f, s.at, size)
			}
			if torn || err != nil {
				return s.at, damages, err
			}
		}
		damages = append(damages, damage)
		if !follows {
			return size, damages, nil
		}
	}
}

// What a file system leaves where it wrote the length of a file and not all of its data:
// zeros from the border of a page on. A few zeros may be the end of a block.
const (
	diskPage    = 4096
	fewestZeros = 16
)

// unwritten reports whether the file ends in pages that were never written, from
// somewhere behind at.
func unwritten(f io.ReaderAt, at, size int64) (bool, error) {
	border, part := size, make([]byte, diskPage)
	for end := size; end > at; {
		from := max(at, (end-1)/diskPage*diskPage)
		page := part[:end-from]
		if _, err := f.ReadAt(page, from); err != nil && !errors.Is(err, io.EOF) {
			return false, fmt.Errorf("read click log: %w", err)
		}
		if len(bytes.Trim(page, "\x00")) > 0 {
			break
		}
		border, end = from, from
	}
	return size-border >= fewestZeros, nil
}

// NoteDamage counts a position that cannot be read, and reports whether it is news.
func (l *Log) NoteDamage(at Position) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.damages[at] {
		return false
	}
	if l.damages == nil {
		l.damages = map[Position]bool{}
	}
	l.damages[at] = true
	l.stats.Damages++
	return true
}

// cutTail cuts a torn end off a segment and syncs the rest, because what a killed process
// wrote is in the page cache at best. It returns the size that is left.
func (l *Log) cutTail(path string, s Segment) (int64, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	end, damages, err := segmentEnd(f, path, s.Size, 0)
	if err == nil && end < s.Size {
		err = f.Truncate(end)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, fmt.Errorf("truncate torn tail of %s: %w", path, err)
	}
	ctx := context.Background()
	for _, d := range damages {
		l.NoteDamage(Position{s.Number, d.Offset})
		l.cfg.Logger.ErrorContext(ctx, "click log is damaged", slog.Any("err", d))
	}
	if end < s.Size {
		l.cfg.Logger.WarnContext(ctx, "click log had a torn tail, truncated it",
			slog.String("segment", path), slog.Int64("at", end), slog.Int64("bytes", s.Size-end))
		l.cut = Position{s.Number, end}
		l.stats.TruncatedBytes = uint64(s.Size - end)
	}
	return end, nil
}

// Commit tells the log that everything before p is counted for good: those segments
// only stay for their retention. What is counted had reached the disk, so that an end
// which was cut off before p was damaged and not torn.
func (l *Log) Commit(p Position) {
	l.mu.Lock()
	l.folded = p
	cut := l.cut
	l.mu.Unlock()
	if cut.Segment == p.Segment && cut.Offset < p.Offset && l.NoteDamage(cut) {
		l.cfg.Logger.ErrorContext(context.Background(), "click log is damaged",
			slog.String("err", "its end was durable and is now damaged: those clicks are counted but cannot be listed"),
			slog.String("at", cut.String()))
	}
}

// What is gone from a log leaves no block that could be damaged. Two things show it: a segment
// that is empty, which has its first block from the moment it is made, and an index beside
// which there is no segment, because trim takes both. A segment that is gone before it had an
// index leaves no trace.
var (
	errEmptied = errors.New("the segment is empty: its clicks are lost, unless a crash interrupted its first write")
	errDeleted = errors.New("the segment is missing, only its index exists: its clicks are lost")
)

// missing returns what is gone of a log behind a position.
func missing(dir string, segments []Segment, counted Position) (gone []*DamageError) {
	there := map[uint64]bool{}
	for _, s := range segments {
		there[s.Number] = true
		name := filepath.Join(dir, SegmentName(s.Number))
		if s.Number > counted.Segment && s.Size == 0 {
			gone = append(gone, &DamageError{File: name, Err: errEmptied})
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return gone // reading the segments reports the error
	}
	for _, e := range entries {
		if number, ok := IndexNumber(e.Name()); ok && number > counted.Segment && !there[number] {
			gone = append(gone, &DamageError{File: filepath.Join(dir, SegmentName(number)), Err: errDeleted})
		}
	}
	return gone
}

// ReportMissing logs and counts the segments that are gone after a position.
func (l *Log) ReportMissing(ctx context.Context, counted Position) {
	for _, d := range missing(l.cfg.Dir, l.Segments(), counted) {
		number, _ := segmentNumber(filepath.Base(d.File))
		if l.NoteDamage(Position{Segment: number}) {
			l.cfg.Logger.ErrorContext(ctx, "click log is damaged, skipping clicks in the damaged part", slog.Any("err", d))
		}
	}
}

// Snapshot reads a folder's log as it stands now, without a torn end, beside a running
// process or without one.
type Snapshot struct {
	*Reader

	Missing []*DamageError // segments that are gone
	Torn    bool           // the newest segment ends in part of a block, as after a power cut or while one is written
	Bytes   int64          // of the segments that the Reader goes through
}

// TakeSnapshot begins at the first segment that may hold a click of since or later. counted
// is the position up to which clicks were counted, and had been synced.
func TakeSnapshot(dir string, since time.Time, counted Position) (*Snapshot, error) {
	segments, err := listSegments(dir)
	if err != nil {
		return nil, fmt.Errorf("read click log: %w", err)
	}
	s := &Snapshot{Reader: &Reader{dir: dir, list: segments}}
	if len(segments) == 0 {
		return s, nil
	}
	s.Missing = missing(dir, segments, counted)
	if s.Torn, err = leaveOutTorn(dir, segments, counted); err != nil {
		return nil, err
	}
	s.pos.Segment = firstSegment(dir, segments, since)
	for _, one := range segments {
		if one.Number >= s.pos.Segment {
			s.Bytes += one.Size
		}
	}
	return s, nil
}

// leaveOutTorn takes a torn end off the newest segment's size and reports whether there is
// one. What was counted had been synced, and is not torn.
func leaveOutTorn(dir string, segments []Segment, counted Position) (bool, error) {
	newest := &segments[len(segments)-1]
	f, err := os.Open(filepath.Join(dir, SegmentName(newest.Number)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read click log: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	synced := int64(0)
	if counted.Segment == newest.Number {
		synced = counted.Offset
	}
	end, _, err := segmentEnd(f, f.Name(), newest.Size, synced)
	if err != nil {
		return false, err
	}
	torn := end < newest.Size
	newest.Size = end
	return torn, nil
}

// firstSegment returns the last segment that begins well before a time; what is older
// has nothing of it. Clocks of one machine may go back by an hour and be understood.
func firstSegment(dir string, segments []Segment, at time.Time) uint64 {
	first := uint64(0)
	for _, s := range segments {
		r := &Reader{dir: dir, pos: Position{Segment: s.Number}, list: []Segment{s}}
		b, err := r.Next()
		r.Close()
		if err == nil && time.UnixMilli(b.Earliest).After(at.Add(-time.Hour)) {
			break
		}
		first = s.Number
	}
	return first
}
