package clicks

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

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
	origin           uint32
	instance, first  uint64
	earliest, latest int64
	watermark, base  int64
}

// Block is a run of events of one instance. Its bytes are valid until the reader's
// next call.
type Block struct {
	At    Position // where it begins
	Next  Position // where the block after it begins
	First EventID
	Count int
	// Earliest and Latest bound the events' times, Unix milliseconds.
	Earliest, Latest int64
	// Watermark promises that all earlier clicks of the instance were before.
	Watermark int64

	version byte
	base    int64
	origin  uint32
	records []byte
}

var (
	errHead  = errors.New("no block begins here")
	errTorn  = errors.New("the block is cut off")
	errCheck = errors.New("the checksum is wrong")
)

// sealBlock writes the head in front of the records of b, which begins with
// headSize free bytes.
func sealBlock(b []byte, h blockHead) {
	b[copy(b, magic)] = version2
	binary.LittleEndian.PutUint32(b[12:], uint32(len(b)-headSize))
	binary.LittleEndian.PutUint32(b[16:], h.count)
	binary.LittleEndian.PutUint32(b[20:], h.origin)
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
		origin:    binary.LittleEndian.Uint32(b[20:]),
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
		e.ID = EventID{b.First.Instance, b.First.Sequence + uint64(i)}
		if err := f(&e); err != nil {
			return err
		}
	}
	return nil
}
