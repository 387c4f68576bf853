package clicks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
)

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
// records, which would have to follow, is known to nobody beforehand.
func (s *segmentScanner) skip() (bool, error) {
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
			_, err := s.next()
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
	s := segmentScanner{file: f, name: name, size: size}
	for {
		_, err := s.next()
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

// damaged notes a place that cannot be read and reports whether it is news.
func (l *Log) damaged(at Position) bool {
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
func (l *Log) cutTail(path string, s segment) (int64, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	end, damages, err := segmentEnd(f, path, s.size, 0)
	if err == nil && end < s.size {
		err = f.Truncate(end)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, fmt.Errorf("cut torn end of %s: %w", path, err)
	}
	ctx := context.Background()
	for _, d := range damages {
		l.damaged(Position{s.number, d.Offset})
		l.cfg.Logger.ErrorContext(ctx, "click log is damaged", slog.Any("err", d))
	}
	if end < s.size {
		l.cfg.Logger.WarnContext(ctx, "click log had a torn end, which was cut off",
			slog.String("segment", path), slog.Int64("at", end), slog.Int64("bytes", s.size-end))
		l.cut = Position{s.number, end}
		l.stats.TruncatedBytes = uint64(s.size - end)
	}
	return end, nil
}

// SetFolded tells the log that everything before p is counted for good: those segments
// only stay for their retention. What is counted had reached the disk, so that an end
// which was cut off before p was damaged and not torn.
func (l *Log) SetFolded(p Position) {
	l.mu.Lock()
	l.folded = p
	cut := l.cut
	l.mu.Unlock()
	if cut.Segment == p.Segment && cut.Offset < p.Offset && l.damaged(cut) {
		l.cfg.Logger.ErrorContext(context.Background(), "click log is damaged",
			slog.String("err", "its end was on the disk once, and is not whole any more: those clicks were counted, and cannot be listed"),
			slog.String("at", cut.String()))
	}
}
