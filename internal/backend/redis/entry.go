package redis

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"time"

	"curt/internal/cache"
	"curt/internal/link"
)

// An entry is written as
//
//	byte    format
//	byte×2  flags
//	byte×8  version, most significant first: put.lua compares it
//	varint  sequence; with flagSeveral the number of partitions, and the sequence of each
//	varint  end in Unix milliseconds, cost in microseconds, redirect, status,
//	        safety, start, expiry, length of the destination, length of the fallback
//	bytes   destination, fallback
//
// A release that needs another form takes another format, and its predecessor sees misses.
const format = 1

const (
	flagMissing = 1 << iota
	flagVoid
	flagLimited
	flagExhausted
	flagForwardQuery
	flagNoIndex
	flagCacheable
	flagSeveral // partitions of the change log
)

// headBytes is up to and with the version.
const headBytes = 1 + 2 + 8

// maxVersion is what a script's numbers, which are float64, hold exactly.
const maxVersion = 1 << 53

// encode writes an entry.
func encode(e cache.Entry) ([]byte, error) {
	t := e.Target
	if t.Version >= maxVersion {
		return nil, errors.New("a version beyond all that a script can compare")
	}
	var flags uint16
	for _, f := range []struct {
		is  bool
		bit uint16
	}{
		{e.Missing, flagMissing},
		{e.Void, flagVoid},
		{t.Limited, flagLimited},
		{t.Exhausted, flagExhausted},
		{t.ForwardQuery, flagForwardQuery},
		{t.NoIndex, flagNoIndex},
		{t.Cacheable, flagCacheable},
		{len(e.AsOf) > 1, flagSeveral},
	} {
		if f.is {
			flags |= f.bit
		}
	}
	b := make([]byte, 0, headBytes+64+len(t.Destination)+len(t.Fallback))
	b = append(b, format)
	b = binary.BigEndian.AppendUint16(b, flags)
	b = binary.BigEndian.AppendUint64(b, uint64(t.Version))
	if len(e.AsOf) > 1 {
		b = binary.AppendUvarint(b, uint64(len(e.AsOf)))
	}
	for i := range max(1, len(e.AsOf)) {
		b = binary.AppendUvarint(b, uint64(e.AsOf.At(uint16(i))))
	}
	b = binary.AppendVarint(b, e.Until.UnixMilli())
	b = binary.AppendUvarint(b, uint64(max(0, e.Cost.Microseconds())))
	b = binary.AppendUvarint(b, uint64(t.Redirect))
	b = append(b, byte(t.Status), byte(t.Safety))
	b = binary.AppendVarint(b, t.Starts)
	b = binary.AppendVarint(b, t.Expires)
	b = binary.AppendUvarint(b, uint64(len(t.Destination)))
	b = binary.AppendUvarint(b, uint64(len(t.Fallback)))
	b = append(b, t.Destination...)
	return append(b, t.Fallback...), nil
}

// decode reads what encode wrote; ok is false for anything else. Whatever is in Redis may
// be anything.
func decode(b []byte) (e cache.Entry, ok bool) {
	if len(b) < headBytes || b[0] != format {
		return cache.Entry{}, false
	}
	flags := binary.BigEndian.Uint16(b[1:])
	r := reader{rest: b[headBytes:]}
	e.Missing, e.Void = flags&flagMissing != 0, flags&flagVoid != 0
	t := &e.Target
	t.Version = link.Version(binary.BigEndian.Uint64(b[3:]))
	t.Limited, t.Exhausted = flags&flagLimited != 0, flags&flagExhausted != 0
	t.ForwardQuery, t.NoIndex, t.Cacheable = flags&flagForwardQuery != 0, flags&flagNoIndex != 0, flags&flagCacheable != 0
	partitions := uint64(1)
	if flags&flagSeveral != 0 {
		partitions = r.uvarint()
	}
	r.bad = r.bad || partitions > link.MaxPartitions
	for range min(partitions, link.MaxPartitions) {
		if s := link.Sequence(r.uvarint()); partitions > 1 || s > 0 {
			e.AsOf = append(e.AsOf, s)
		}
	}
	e.Until = time.UnixMilli(r.varint()).UTC()
	e.Cost = time.Duration(min(r.uvarint(), math.MaxInt64/1000)) * time.Microsecond
	t.Redirect = link.Redirect(r.uvarint())
	t.Status, t.Safety = link.Status(r.octet()), link.Safety(r.octet())
	t.Starts, t.Expires = r.varint(), r.varint()
	destination, fallback := r.uvarint(), r.uvarint()
	t.Destination, t.Fallback = r.text(destination), r.text(fallback)
	if r.bad || len(r.rest) > 0 || !makesSense(&e) {
		return cache.Entry{}, false
	}
	return e, true
}

// makesSense refuses what no process of ours wrote.
func makesSense(e *cache.Entry) bool {
	t := &e.Target
	if t.Version >= maxVersion {
		return false
	}
	if e.Missing || e.Void {
		return e.Missing != e.Void && t.Destination == "" && t.Fallback == "" && e.Missing == (t.Version == 0)
	}
	if strings.ContainsFunc(t.Destination+t.Fallback, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return false // it would be written into a head
	}
	return t.Status >= link.Active && t.Status <= link.Deleted && t.Safety >= link.Clean && t.Safety <= link.Legal &&
		(t.Status == link.Deleted || (t.Redirect.Valid() && t.Destination != ""))
}

// reader takes an entry apart; after something that is not there it is bad for good.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	return advance(r, v, n)
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	return advance(r, v, n)
}

func advance[T any](r *reader, v T, n int) (none T) {
	if n <= 0 {
		r.bad, r.rest = true, nil
		return none
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) octet() byte {
	if len(r.rest) == 0 {
		r.bad = true
		return 0
	}
	v := r.rest[0]
	r.rest = r.rest[1:]
	return v
}

func (r *reader) text(n uint64) string {
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return ""
	}
	v := string(r.rest[:n])
	r.rest = r.rest[n:]
	return v
}
