package link

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"time"
)

// ID identifies one link for good. It is a UUIDv7 (RFC 9562, section 5.7) chosen
// before the first write, which makes Create idempotent: whoever retries with
// the same ID gets the link that the first attempt stored. Because it begins
// with the creation time, IDs sort by age and drivers may use them as the
// order of List.
type ID [16]byte

// NewID returns an ID for the given time with 62 bits read from random, normally
// crypto/rand.Reader. The 12 bits behind the milliseconds tell 244 ns apart (RFC
// 9562, section 6.2, method 3), so that IDs of one millisecond keep their order.
func NewID(now time.Time, random io.Reader) (ID, error) { return newID(tickOf(now), random) }

// ticksPerMilli is 2^12: the clock of IDs.
const ticksPerMilli = 1 << 12

// tickOf is a time in the clock of IDs.
func tickOf(now time.Time) int64 {
	rest := now.Nanosecond() % int(time.Millisecond)
	return now.UnixMilli()*ticksPerMilli + int64(rest)*ticksPerMilli/int64(time.Millisecond)
}

func newID(tick int64, random io.Reader) (ID, error) {
	var id ID
	if _, err := io.ReadFull(random, id[8:]); err != nil {
		return ID{}, fmt.Errorf("read random bits of an id: %w", err)
	}
	ms, fraction := tick/ticksPerMilli, tick%ticksPerMilli
	var text [8]byte
	binary.BigEndian.PutUint64(text[:], uint64(ms)<<16|0x7000|uint64(fraction))
	copy(id[:8], text[:])
	id[8] = id[8]&0x3f | 0x80
	return id, nil
}

// maxAhead bounds how far IDs may run ahead of the clock to stay in order: 4 million
// of them. A clock that went back by more is followed.
const maxAhead = 1000 * ticksPerMilli

// IDs makes the IDs of one process: each is above all that it made before, also when
// many are made in one tick or the clock goes back by less than a second. It is safe
// for many goroutines. Make it with NewIDs.
type IDs struct {
	random io.Reader

	mu   sync.Mutex
	last int64 // the tick of the newest ID; guarded by mu
}

// NewIDs returns a source of IDs that reads random, normally crypto/rand.Reader.
func NewIDs(random io.Reader) *IDs { return &IDs{random: random} }

// New returns an ID for the given time.
func (s *IDs) New(now time.Time) (ID, error) { return s.Span(now, 1) }

// Span returns the first of n IDs in a row for the given time, n at least 1; the others
// are its [ID.Nth]. Whoever keeps the first can name them all again.
func (s *IDs) Span(now time.Time, n int) (ID, error) {
	tick := tickOf(now)
	s.mu.Lock()
	if ahead := s.last - tick; ahead >= 0 && ahead < maxAhead {
		tick = s.last + 1
	}
	s.last = tick + int64(n) - 1
	s.mu.Unlock()
	return newID(tick, s.random)
}

// Nth returns the ID that lies n ticks after id, with its random bits: the n-th after the
// first of a [IDs.Span].
func (id ID) Nth(n int) ID {
	first := binary.BigEndian.Uint64(id[:8])
	tick := first>>16*ticksPerMilli + first%ticksPerMilli + uint64(n)
	binary.BigEndian.PutUint64(id[:8], tick/ticksPerMilli<<16|0x7000|tick%ticksPerMilli)
	return id
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
