package link

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// What stores of links have in common.

// Normal returns l as a later Get will: of a deleted link what its tombstone keeps,
// and nil for no tags.
func (l Link) Normal() Link {
	if l.Status == Deleted {
		return l.remains(l.Updated)
	}
	if len(l.Tags) == 0 {
		l.Tags = nil
	}
	return l
}

// Digest stands for a destination in an index: 8 bytes, of which no stranger can
// make many equal ones.
func Digest(destination string) int64 {
	if destination == "" {
		return 0 // a tombstone
	}
	sum := sha256.Sum256([]byte(destination))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// Millis is how a time is stored: 0 for none.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// TimeOf returns the time that Millis stored.
func TimeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
