package ratelimit

import "testing"

// TestSipHash has the first steps of the reference vectors: word by word, for what text adds to them
// is our own.
func TestSipHash(t *testing.T) {
	secret := make([]byte, 16)
	for i := range secret {
		secret[i] = byte(i)
	}
	k := NewHashKey(secret)
	// SipHash-2-4 of 15 bytes 00 01 … 0e (Aumasson, Bernstein 2012, appendix A).
	s := sip{k.a ^ 0x736f6d6570736575, k.b ^ 0x646f72616e646f6d, k.a ^ 0x6c7967656e657261, k.b ^ 0x7465646279746573}
	s.word(0x0706050403020100)
	s.word(0x0f0e0d0c0b0a0908)
	s[2] ^= 0xff
	for range 4 {
		s.round()
	}
	if got := s[0] ^ s[1] ^ s[2] ^ s[3]; got != 0xa129ca6149be45e5 {
		t.Errorf("%x, want the reference value", got)
	}
	seen := map[uint64]string{}
	for _, pair := range [][2]string{{"", ""}, {"a", ""}, {"", "a"}, {"ab", "c"}, {"a", "bc"}, {"abcdefgh", ""}, {"abcdefg", "h"}, {"abcdefgh", "i"}, {"\x00", ""}, {"", "\x00"}} {
		sum, name := k.Sum(pair[0], pair[1]), pair[0]+"|"+pair[1]
		if other, taken := seen[sum]; taken {
			t.Errorf("%q and %q have one hash", name, other)
		}
		seen[sum] = name
	}
	if n := testing.AllocsPerRun(100, func() { k.Sum("links.example", "abcdefg") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
