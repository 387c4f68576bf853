// Package walfile reads SQLite's write-ahead log as a file, before SQLite does.
//
// SQLite believes the frames of a log up to the first that does not hold, and drops the
// others without a word: that is right for an end that a power cut tore, and wrong for a
// bit that flipped in the middle. [Examine] tells the two apart, for a log that is written
// by one process which waits for the disk at each commit (synchronous=FULL):
//
//   - Of what was not yet on the disk there is one transaction at most. Any part of it may
//     be there: the disk may have written its last frame and not its first. So frames
//     behind a bad one say nothing as long as they can be of one transaction.
//   - A frame with a commit mark, and a whole transaction behind it, mean that the first
//     was confirmed before the second began. When SQLite would drop both, it is damage.
//   - The index of the log (the file -shm) says up to which frame the log was confirmed.
//     It is never synced, so it may be old or missing; but it is never ahead of the log.
//   - A log is begun anew by a header with other salts, which is on the disk before the
//     first frame behind it is written. Frames with older salts are of no use to anybody.
//
// The package changes nothing, and imports nothing of ours.
// The format: https://www.sqlite.org/fileformat2.html#walformat and, of the index,
// https://www.sqlite.org/walformat.html.
package walfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	headerSize = 32
	frameSize  = 24 // of a frame's header, in front of its page

	magic   = 0x377f0682 // its lowest bit says in which order the checksums read bytes
	version = 3007000

	// usualPage is taken for the size of pages where the header cannot be believed.
	usualPage = 4096
)

// Report is what a log looks like.
type Report struct {
	Size int64 // of the file; 0 = empty, or there is none

	// Frames is how many of its frames SQLite would use: up to the last commit in front of
	// the first frame that does not hold.
	Frames int
	// Confirmed is how many the index says were confirmed; 0 = it does not say.
	Confirmed int

	// Bad is the number, from 1, of the first frame that does not hold; 0 = the header does
	// not. It means something only where Torn or Damaged is set.
	Bad int
	// Torn: something follows the last commit. Damaged: it was confirmed.
	Torn, Damaged bool
	// DroppedFrames and DroppedTransactions are behind the last commit.
	DroppedFrames, DroppedTransactions int
}

// Examine reads the log of a database that nobody has open. An error is one of reading.
func Examine(database string) (r Report, err error) {
	f, err := os.Open(database + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read the write-ahead log: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return r, fmt.Errorf("read the write-ahead log: %w", err)
	}
	w := walk{report: Report{Size: info.Size()}, from: f}
	if err := w.run(); err != nil {
		return r, fmt.Errorf("read %s-wal: %w", database, err)
	}
	if w.header.ok {
		w.report.Confirmed, err = confirmed(database+"-shm", w.header.salts)
	}
	return w.report, err
}

// header is the first 32 bytes of a log.
type header struct {
	ok    bool
	order binary.ByteOrder
	page  int
	salts [8]byte
	sum   sum
}

func parseHeader(b []byte) header {
	be := binary.BigEndian
	kind := be.Uint32(b)
	h := header{order: binary.LittleEndian, page: int(be.Uint32(b[8:])), salts: [8]byte(b[16:24]), sum: sumAt(b[24:])}
	if kind&1 == 1 {
		h.order = be
	}
	good := h.page >= 512 && h.page <= 65536 && h.page&(h.page-1) == 0
	h.ok = kind&^1 == magic && be.Uint32(b[4:]) == version && good && sum{}.add(h.order, b[:24]) == h.sum
	if !good {
		h.page = usualPage
	}
	return h
}

// sum is the running checksum of a log.
type sum [2]uint32

func sumAt(b []byte) sum {
	return sum{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}

func (s sum) add(order binary.ByteOrder, b []byte) sum {
	if order == binary.LittleEndian { // apart, so that the compiler sees which
		for ; len(b) >= 8; b = b[8:] {
			s[0] += binary.LittleEndian.Uint32(b) + s[1]
			s[1] += binary.LittleEndian.Uint32(b[4:]) + s[0]
		}
		return s
	}
	for ; len(b) >= 8; b = b[8:] {
		s[0] += binary.BigEndian.Uint32(b) + s[1]
		s[1] += binary.BigEndian.Uint32(b[4:]) + s[0]
	}
	return s
}

// walk goes through a log once. Each frame is checked from the checksum that the frame
// before it bears, so that what lies behind a bad one can be judged by itself.
type walk struct {
	report Report
	from   io.Reader
	header header

	before sum  // what the frame before bears
	broken bool // a frame did not hold
	marked bool // behind the last commit: a frame with a commit mark was met
}

func (w *walk) run() error {
	if w.report.Size < headerSize {
		return nil // no frame was ever written: the header is synced first
	}
	head := make([]byte, headerSize)
	if _, err := io.ReadFull(w.from, head); err != nil {
		return err
	}
	w.header = parseHeader(head)
	if !w.header.ok {
		return w.headless()
	}
	w.before = w.header.sum
	return w.frames(w.frame)
}

// frames calls f with each frame that is there in full.
func (w *walk) frames(f func(n int, frame []byte)) error {
	slot := frameSize + w.header.page
	buf := make([]byte, max(int(min(1<<20, w.report.Size))/slot, 1)*slot)
	for n := 1; ; {
		k, err := io.ReadFull(w.from, buf)
		for rest := buf[:k]; len(rest) >= slot; rest = rest[slot:] {
			f(n, rest[:slot])
			n++
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// frame looks at one frame of a log whose header holds.
func (w *walk) frame(n int, b []byte) {
	r := &w.report
	own, bears := [8]byte(b[8:16]) == w.header.salts, sumAt(b[16:24])
	commit := own && binary.BigEndian.Uint32(b[4:]) != 0
	holds := own && binary.BigEndian.Uint32(b) != 0 &&
		w.before.add(w.header.order, b[:8]).add(w.header.order, b[frameSize:]) == bears
	w.before = bears
	if !holds && !w.broken {
		w.broken, r.Bad = true, n
	}
	switch {
	case !w.broken && commit:
		r.Frames, r.Torn, w.marked = n, false, false
		return
	case own:
		r.Torn, r.DroppedFrames = true, n-r.Frames
	}
	if commit {
		r.DroppedTransactions++
		r.Damaged = r.Damaged || w.marked && holds
		w.marked = true
	}
}

// headless looks at a log whose header does not hold. Its frames were written after the
// header was on the disk, so where there is one, the header was damaged later. They have the
// salts of the first that is no zeros.
func (w *walk) headless() error {
	r := &w.report
	var salts [8]byte
	return w.frames(func(n int, b []byte) {
		page, own := binary.BigEndian.Uint32(b), [8]byte(b[8:16])
		if salts == [8]byte{} {
			salts = own
		}
		if page == 0 || own != salts || own == [8]byte{} {
			return
		}
		r.Torn, r.Damaged, r.DroppedFrames = true, true, n
		if binary.BigEndian.Uint32(b[4:]) != 0 {
			r.DroppedTransactions++
		}
	})
}

// confirmed returns the number of frames that the index of a log calls committed, 0 where
// it is not there, not whole, or of another log.
func confirmed(name string, salts [8]byte) (frames int, err error) {
	const size = 48 // of a copy of the header, of which there are two
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the index of the write-ahead log: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	both := make([]byte, 2*size)
	if _, err := io.ReadFull(f, both); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, nil
		}
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	native := binary.ByteOrder(binary.LittleEndian)
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		native = binary.BigEndian
	}
	for _, b := range [][]byte{both[:size], both[size:]} {
		s := sum{}.add(native, b[:40])
		whole := s[0] == native.Uint32(b[40:]) && s[1] == native.Uint32(b[44:])
		if whole && native.Uint32(b) == version && b[12] == 1 && bytes.Equal(b[32:40], salts[:]) {
			frames = max(frames, int(native.Uint32(b[16:])))
		}
	}
	return frames, nil
}
