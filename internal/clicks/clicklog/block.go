package clicklog

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"curt/internal/clicks"
	"curt/internal/clicks/useragent"
)

// Position is a place in the click log: an offset in a segment. Positions grow as
// the log does; the zero Position is before everything.
type Position struct {
	Segment uint64
	Offset  int64
}

// Compare orders positions as cmp.Compare does.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Segment, q.Segment), cmp.Compare(p.Offset, q.Offset))
}

func (p Position) String() string { return fmt.Sprintf("%s+%d", SegmentName(p.Segment), p.Offset) }

// A block is what one write(2) appends: a head of headSize bytes and the records.
// All numbers are little-endian.
//
//	 0  magic "CURTCLK" and the version: '2', or '1' of releases that kept headers as they
//	    were sent, which is read
//	 8  CRC-32C of everything from offset 12 to the end of the block
//	12  size of the records in bytes
//	16  number of records
//	20  what is known of the clicks' addresses: bit 0, they are one; bit 1, it is that of the
//	    instance's block before, too; the others are zero
//	24  instance
//	32  sequence of the first record
//	40  earliest and
//	48  latest time of a record, Unix milliseconds
//	56  the watermark: every click before it that this instance kept is in this
//	    block or an earlier one
//	64  the time that the records' times are relative to
const (
	magic    = "CURTCLK"
	version1 = '1'
	version2 = '2'
	headSize = 72

	// maxBlock bounds the records of a block, and so what a reader of a damaged
	// file may be made to allocate. A drain with more becomes several blocks.
	maxBlock = 1 << 20
	// blockTarget ends a block; the last record may pass it, never maxBlock.
	blockTarget = maxBlock - 4096
)

// castagnoli has hardware support on every machine that matters.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

type blockHead struct {
	version          byte // of what is read
	size, count      uint32
	origin           Origin
	instance, first  uint64
	earliest, latest int64
	watermark, base  int64
}

// Block is a run of events of one instance. Its bytes are valid until the reader's
// next call.
type Block struct {
	At    Position // where it begins
	Next  Position // where the block after it begins
	First clicks.EventID
	Count int
	// Earliest and Latest bound the events' times, Unix milliseconds.
	Earliest, Latest int64
	// Watermark promises that all earlier clicks of the instance were before.
	Watermark int64
	Origin    Origin
	NotBefore int64 // events of earlier times are left out; 0 = none

	version byte
	base    int64
	records []byte
}

// Origin says how many addresses the clicks of a block came from, so that a proxy whose
// visitors all seem to be one is noticed although no address is kept.
type Origin uint32

// The flags of an Origin; their numbers are stored.
const (
	OneAddress  Origin = 1 << 0 // all clicks of the block
	SameAddress Origin = 1 << 1 // those of the instance's previous block, too
)

// Builder fills one block at a time: Reset, Add for each click, Seal. Its buffer is reused.
type Builder struct {
	b    []byte
	head blockHead
}

// Reset begins a block whose first click has the given ID.
func (w *Builder) Reset(first clicks.EventID) {
	w.b = append(w.b[:0], make([]byte, headSize)...)
	w.head = blockHead{instance: first.Instance, first: first.Sequence}
}

// Add appends a click: what is kept of c, what its user agent said, and the visitor's tag; 0 = unknown.
func (w *Builder) Add(c *clicks.Raw, agent useragent.Result, visitor uint64, p clicks.Location) {
	h := &w.head
	if h.count == 0 {
		h.base, h.earliest, h.latest = c.Time, c.Time, c.Time
	}
	h.earliest, h.latest = min(h.earliest, c.Time), max(h.latest, c.Time)
	h.count++
	w.b = appendEvent(w.b, c, agent, h.base, visitor, p)
}

// Count returns how many clicks the block has.
func (w *Builder) Count() int { return int(w.head.count) }

// Full reports whether the block has to be sealed before the next click.
func (w *Builder) Full() bool { return len(w.b) >= blockTarget }

// Seal returns the block for [Log.Append]. It is valid until Reset.
func (w *Builder) Seal(watermark int64, o Origin) []byte {
	w.head.watermark, w.head.origin = watermark, o
	sealBlock(w.b, w.head)
	return w.b
}

var (
	errHead  = errors.New("not the start of a block")
	errTorn  = errors.New("truncated block")
	errCheck = errors.New("the checksum is wrong")
)

// sealBlock writes the head in front of the records of b, which begins with
// headSize free bytes.
func sealBlock(b []byte, h blockHead) {
	b[copy(b, magic)] = version2
	binary.LittleEndian.PutUint32(b[12:], uint32(len(b)-headSize))
	binary.LittleEndian.PutUint32(b[16:], h.count)
	binary.LittleEndian.PutUint32(b[20:], uint32(h.origin))
	binary.LittleEndian.PutUint64(b[24:], h.instance)
	binary.LittleEndian.PutUint64(b[32:], h.first)
	binary.LittleEndian.PutUint64(b[40:], uint64(h.earliest))
	binary.LittleEndian.PutUint64(b[48:], uint64(h.latest))
	binary.LittleEndian.PutUint64(b[56:], uint64(h.watermark))
	binary.LittleEndian.PutUint64(b[64:], uint64(h.base))
	binary.LittleEndian.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli()))
}

// readHead reads a block's head. It proves nothing: the checksum is over the rest.
func readHead(b []byte) (blockHead, error) {
	if len(b) < headSize {
		return blockHead{}, errTorn
	}
	h := blockHead{
		version:   b[len(magic)],
		size:      binary.LittleEndian.Uint32(b[12:]),
		count:     binary.LittleEndian.Uint32(b[16:]),
		origin:    Origin(binary.LittleEndian.Uint32(b[20:])),
		instance:  binary.LittleEndian.Uint64(b[24:]),
		first:     binary.LittleEndian.Uint64(b[32:]),
		earliest:  int64(binary.LittleEndian.Uint64(b[40:])),
		latest:    int64(binary.LittleEndian.Uint64(b[48:])),
		watermark: int64(binary.LittleEndian.Uint64(b[56:])),
		base:      int64(binary.LittleEndian.Uint64(b[64:])),
	}
	known := h.version == version1 || h.version == version2
	if string(b[:len(magic)]) != magic || !known || h.size > maxBlock || h.count > h.size {
		return blockHead{}, errHead
	}
	return h, nil
}

// checkBlock verifies a whole block, head included.
func checkBlock(b []byte) error {
	if crc32.Checksum(b[12:], castagnoli()) != binary.LittleEndian.Uint32(b[8:]) {
		return errCheck
	}
	return nil
}

// Size returns the bytes of the block's records.
func (b *Block) Size() int { return len(b.records) }

// Events calls f with each event in order. The Event is reused. It ends at the
// first error, f's or that of a record that does not fit, which after a good
// checksum only a faulty writer can cause.
func (b *Block) Events(f func(*Event) error) error {
	var e Event
	rest := b.records
	for i := range b.Count {
		var err error
		if rest, err = nextEvent(rest, b.version, b.base, &e); err != nil {
			return err
		}
		if e.Time < b.NotBefore {
			continue
		}
		e.ID = clicks.EventID{Instance: b.First.Instance, Sequence: b.First.Sequence + uint64(i)}
		if err := f(&e); err != nil {
			return err
		}
	}
	return nil
}
