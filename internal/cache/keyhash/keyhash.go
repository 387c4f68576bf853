// Package keyhash gives keys of links the hashes that the cache finds its entries by.
package keyhash

import (
	"hash/maphash"

	"curt/internal/link"
)

// Hasher gives a key its hash, from which its shard follows. New makes one.
type Hasher struct{ seed maphash.Seed }

// New returns a Hasher with a seed of its own.
func New() Hasher { return Hasher{maphash.MakeSeed()} }

// Of and OfBytes give the same hash for the same bytes. Nearly all keys are of the
// default domain, whose name is empty.
func (s Hasher) Of(d link.Domain, code link.Code) uint64 {
	return s.withDomain(maphash.String(s.seed, string(code)), d)
}

func (s Hasher) OfBytes(d link.Domain, code []byte) uint64 {
	return s.withDomain(maphash.Bytes(s.seed, code), d)
}

func (s Hasher) withDomain(h uint64, d link.Domain) uint64 {
	if d == "" {
		return h
	}
	return h ^ maphash.String(s.seed, string(d))*0x9e3779b97f4a7c15 // odd: a bijection, so that equal parts do not cancel out
}
