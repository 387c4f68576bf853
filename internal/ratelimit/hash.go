package ratelimit

import (
	"encoding/binary"
	"math/bits"
)

// HashKey hashes names under a secret (SipHash-2-4), so that no client can choose a name that falls
// together with another's, and servers with the same secret have the same hashes.
type HashKey struct{ a, b uint64 }

// NewHashKey returns the hash of a secret of at least 16 bytes, of which it uses the first 16.
func NewHashKey(secret []byte) HashKey {
	return HashKey{binary.LittleEndian.Uint64(secret), binary.LittleEndian.Uint64(secret[8:])}
}

// Sum hashes two texts. It never returns 0 and allocates nothing.
func (k HashKey) Sum(first, second string) uint64 {
	s := sip{k.a ^ 0x736f6d6570736575, k.b ^ 0x646f72616e646f6d, k.a ^ 0x6c7967656e657261, k.b ^ 0x7465646279746573}
	s.text(first)
	s.text(second)
	s[2] ^= 0xff
	for range 4 {
		s.round()
	}
	return max(1, s[0]^s[1]^s[2]^s[3])
}

// sip is the state of SipHash (Aumasson, Bernstein 2012).
type sip [4]uint64

// text adds a text with its length, so that two texts do not run into each other.
func (s *sip) text(text string) {
	length := uint64(len(text)) << 56
	for len(text) >= 8 {
		s.word(uint64(text[0]) | uint64(text[1])<<8 | uint64(text[2])<<16 | uint64(text[3])<<24 |
			uint64(text[4])<<32 | uint64(text[5])<<40 | uint64(text[6])<<48 | uint64(text[7])<<56)
		text = text[8:]
	}
	for i := range len(text) {
		length |= uint64(text[i]) << (8 * i)
	}
	s.word(length)
}

func (s *sip) word(m uint64) {
	s[3] ^= m
	s.round()
	s.round()
	s[0] ^= m
}

func (s *sip) round() {
	s[0] += s[1]
	s[1] = bits.RotateLeft64(s[1], 13) ^ s[0]
	s[0] = bits.RotateLeft64(s[0], 32)
	s[2] += s[3]
	s[3] = bits.RotateLeft64(s[3], 16) ^ s[2]
	s[0] += s[3]
	s[3] = bits.RotateLeft64(s[3], 21) ^ s[0]
	s[2] += s[1]
	s[1] = bits.RotateLeft64(s[1], 17) ^ s[2]
	s[2] = bits.RotateLeft64(s[2], 32)
}
