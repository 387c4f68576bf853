package walfile_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"curt/internal/walfile"
)

const (
	pageSize  = 512 // the smallest: the format is the same, and there are more bytes to flip in less
	slotSize  = 24 + pageSize
	headSize  = 32
	saltsMade = 0x5a17
)

// logFile is a write-ahead log as SQLite writes it, frame by frame.
type logFile struct {
	bytes []byte
	order binary.ByteOrder
	sum   [2]uint32
	salts [8]byte
	ends  []int // of transactions, in frames
	page  int
}

func newLog(order binary.ByteOrder, generation uint32) *logFile {
	return newLogOf(order, generation, pageSize)
}

func newLogOf(order binary.ByteOrder, generation uint32, page int) *logFile {
	l := &logFile{order: order, page: page}
	be := binary.BigEndian
	be.PutUint32(l.salts[:], saltsMade+generation)
	be.PutUint32(l.salts[4:], rand.Uint32())
	head := make([]byte, headSize)
	be.PutUint32(head, 0x377f0682)
	if order == be {
		be.PutUint32(head, 0x377f0683)
	}
	be.PutUint32(head[4:], 3007000)
	be.PutUint32(head[8:], uint32(page))
	be.PutUint32(head[12:], generation)
	copy(head[16:], l.salts[:])
	l.add(head[:24])
	be.PutUint32(head[24:], l.sum[0])
	be.PutUint32(head[28:], l.sum[1])
	l.bytes = head
	return l
}

func (l *logFile) add(b []byte) {
	for ; len(b) > 0; b = b[8:] {
		l.sum[0] += l.order.Uint32(b) + l.sum[1]
		l.sum[1] += l.order.Uint32(b[4:]) + l.sum[0]
	}
}

// write appends a transaction of some frames; without commit it is one that was rolled back.
func (l *logFile) write(frames int, commit bool) {
	for n := range frames {
		frame := make([]byte, 24+l.page)
		binary.BigEndian.PutUint32(frame, rand.Uint32N(100)+1)
		if commit && n == frames-1 {
			binary.BigEndian.PutUint32(frame[4:], 100)
		}
		copy(frame[8:], l.salts[:])
		for i := 24; i < len(frame); i++ {
			frame[i] = byte(rand.Uint32())
		}
		l.add(frame[:8])
		l.add(frame[24:])
		binary.BigEndian.PutUint32(frame[16:], l.sum[0])
		binary.BigEndian.PutUint32(frame[20:], l.sum[1])
		l.bytes = append(l.bytes, frame...)
	}
	if commit {
		l.ends = append(l.ends, (len(l.bytes)-headSize)/(24+l.page))
	}
}

// filled is a log of some transactions, the last of which has several frames.
func filled(order binary.ByteOrder, generation uint32) *logFile {
	l := newLog(order, generation)
	for _, frames := range []int{1, 3, 1, 1, 2, 4} {
		l.write(frames, true)
	}
	return l
}

func (l *logFile) frames() int    { return l.ends[len(l.ends)-1] }
func (l *logFile) confirmed() int { return l.ends[len(l.ends)-2] }

func examine(t *testing.T, log []byte) walfile.Report {
	t.Helper()
	r, err := walfile.Walk(log)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWholeLogs(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		l := filled(order, 1)
		if r := examine(t, l.bytes); r.Frames != 12 || r.Torn || r.Damaged {
			t.Errorf("a whole log: %+v", r)
		}
		l.write(5, false) // what a rollback, or the kill of a long transaction, leaves
		if r := examine(t, l.bytes); r.Frames != 12 || r.Damaged {
			t.Errorf("a log with frames behind its last commit: %+v", r)
		}
	}
	path := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(path+"-wal", filled(binary.LittleEndian, 1).bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := walfile.Examine(path); err != nil || r.Frames != 12 || r.Torn || r.Damaged {
		t.Errorf("a whole log in a file: %+v, %v", r, err)
	}
	if r, err := walfile.Examine(filepath.Join(t.TempDir(), "none.db")); err != nil || r != (walfile.Report{}) {
		t.Errorf("without a log: %+v, %v", r, err)
	}
	if r := examine(t, newLog(binary.LittleEndian, 1).bytes); r.Frames != 0 || r.Damaged {
		t.Errorf("a log of its header alone: %+v", r)
	}
}

// A log that ends anywhere is not damaged, and has all transactions that are there in full.
func TestEveryEndIsNormal(t *testing.T) {
	l := filled(binary.LittleEndian, 1)
	for size := range len(l.bytes) {
		r := examine(t, l.bytes[:size])
		whole := 0
		for _, end := range l.ends {
			if headSize+end*slotSize <= size {
				whole = end
			}
		}
		if r.Damaged || r.Frames != whole {
			t.Fatalf("cut at byte %d: %+v, want %d frames", size, r, whole)
		}
	}
}

// The disk writes what is not synced in any order: of the last transaction each frame, or a
// part of it, may be missing, in front of zeros or of what an older log has left there.
func TestAnyPartOfTheLastTransactionMayBeMissing(t *testing.T) {
	older := filled(binary.LittleEndian, 1)
	older.write(20, true)
	for name, behind := range map[string][]byte{"nothing": nil, "zeros": make([]byte, len(older.bytes)), "an older log": older.bytes} {
		for missing := range 1 << 4 {
			l := filled(binary.LittleEndian, 2)
			now := append(bytes.Clone(l.bytes), behind[min(len(l.bytes), len(behind)):]...)
			for n := range 4 {
				if missing>>n&1 == 0 {
					continue
				}
				at := headSize + (l.confirmed()+n)*slotSize
				torn := now[at+rand.IntN(slotSize-1) : at+slotSize] // from anywhere in the frame on
				clear(torn)
				if len(behind) > 0 {
					copy(torn, behind[at+slotSize-len(torn):])
				}
			}
			want := l.frames()
			if missing != 0 {
				want = l.confirmed()
			}
			if r := examine(t, now); r.Damaged || r.Frames != want {
				t.Errorf("frames %04b are missing in front of %s: %+v, want %d frames", missing, name, r, want)
			}
		}
	}
}

// What was confirmed and then damaged is found, whatever bit it was: but for the last
// transactions, which may be such that were not confirmed.
func TestFlippedBitsAreDamage(t *testing.T) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		l := filled(order, 1)
		older := filled(order, 0)
		older.write(10, true)
		l.bytes = append(l.bytes, older.bytes[len(l.bytes):]...)
		certain := l.ends[len(l.ends)-3] // two transactions behind it
		for n := range l.frames() {
			at := headSize + n*slotSize
			for bit := range slotSize * 8 {
				if bit >= 24*8 && bit%211 != 0 { // of the page some
					continue
				}
				now := bytes.Clone(l.bytes)
				now[at+bit/8] ^= 1 << (bit % 8)
				r := examine(t, now)
				if r.Frames > n {
					t.Fatalf("frame %d with bit %d flipped is believed: %+v", n+1, bit, r)
				}
				if n < certain && (!r.Damaged || r.Bad != n+1 || r.DroppedTransactions == 0 || r.DroppedFrames == 0) {
					t.Fatalf("bit %d of frame %d: %+v", bit, n+1, r)
				}
			}
		}
	}
}

func TestFlippedBitsOfTheHeaderAreDamage(t *testing.T) {
	l := filled(binary.LittleEndian, 1)
	for bit := range headSize * 8 {
		now := bytes.Clone(l.bytes)
		now[bit/8] ^= 1 << (bit % 8)
		if r := examine(t, now); r.Frames != 0 || !r.Damaged || r.Bad != 0 {
			t.Errorf("bit %d: %+v", bit, r)
		}
	}
	if r := examine(t, make([]byte, len(l.bytes))); r.Damaged {
		t.Errorf("a log of zeros, of which nothing was confirmed: %+v", r)
	}
}

// Blocks that were zeroed, each in its turn: of a log of pages of 4,096 bytes, as ours are.
func TestLostBlocksAreDamage(t *testing.T) {
	l := newLogOf(binary.LittleEndian, 1, 4096)
	for range 40 {
		l.write(1, true)
	}
	for at := 0; at+4096 < len(l.bytes)-2*(24+4096); at += 4096 {
		now := bytes.Clone(l.bytes)
		clear(now[at : at+4096])
		if r := examine(t, now); !r.Damaged {
			t.Errorf("the block at %d is zeros: %+v", at, r)
		}
	}
}
