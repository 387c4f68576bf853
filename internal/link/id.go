package link

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"time"
)

// ID identifies one link for good. It is a UUIDv7 (RFC 9562, section 5.7) chosen
// before the first write, which makes Create idempotent: whoever retries with
// the same ID gets the link that the first attempt stored. Because it begins
// with the creation time, IDs sort by age and drivers may use them as the
// order of List.
type ID [16]byte

// NewID returns an ID for the given time (milliseconds count) with 74 bits read
// from random, normally crypto/rand.Reader.
func NewID(now time.Time, random io.Reader) (ID, error) {
	var id ID
	if _, err := io.ReadFull(random, id[6:]); err != nil {
		return ID{}, fmt.Errorf("read random bits of an id: %w", err)
	}
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(now.UnixMilli())<<16)
	copy(id[:6], ms[:6])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id, nil
}

// Time returns the time that an ID begins with, to the millisecond.
func (id ID) Time() time.Time {
	var ms [8]byte
	copy(ms[2:], id[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))).UTC()
}

// IsZero reports whether id was never set.
func (id ID) IsZero() bool { return id == ID{} }

// String returns the canonical text of a UUID, lower case.
func (id ID) String() string {
	var b [36]byte
	hex.Encode(b[0:8], id[0:4])
	b[8] = '-'
	hex.Encode(b[9:13], id[4:6])
	b[13] = '-'
	hex.Encode(b[14:18], id[6:8])
	b[18] = '-'
	hex.Encode(b[19:23], id[8:10])
	b[23] = '-'
	hex.Encode(b[24:36], id[10:16])
	return string(b[:])
}

// ParseID reads the canonical text of a UUID. The error wraps ErrInvalid.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return ID{}, fmt.Errorf("%w: %q is not a UUID", ErrInvalid, s)
	}
	digits := s[0:8] + s[9:13] + s[14:18] + s[19:23] + s[24:36]
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return ID{}, fmt.Errorf("%w: %q is not a UUID", ErrInvalid, s)
	}
	return id, nil
}
