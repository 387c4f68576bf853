package codegen

import (
	"encoding/binary"
	"math/bits"

	"github.com/dchest/siphash"

	"curt/internal/link"
)

// rounds of the Feistel network. Four give a strong pseudorandom permutation from
// ideal round functions (Luby and Rackoff, 1988), but on halves as small as ours
// (12 to 30 bits) attacks with many known pairs reach further; ten is what NIST
// chose for the same construction (SP 800-38G, FF1).
const rounds = 10

// Permutation is a keyed bijection of the code space of each length onto itself:
// whoever holds no key cannot tell the code of the next id, nor the age of a link
// from its code.
//
// It is a balanced Feistel network over the smallest even number of bits that
// holds the space, brought down to the space by cycle walking (Black and Rogaway,
// "Ciphers with Arbitrary Finite Domains", CT-RSA 2002, sections 3 and 4). The
// space fills at least 72 % of its bits, so a walk takes 1.4 networks at most on
// average. The round function is SipHash-2-4 (Aumasson and Bernstein, 2012) of
// (half, round, length): the length is the tweak, so that no two lengths share a
// permutation. AES would need its blocks on the heap, because cipher.Block is an
// interface; SipHash is made for short inputs and allocates nothing.
//
// A Permutation never changes and is safe for many goroutines. Changing rounds,
// alphabet or round function would move every code: none may ever change.
type Permutation struct {
	even, odd sipKey // keys of the even and the odd rounds
}

type sipKey struct{ k0, k1 uint64 }

// NewPermutation returns the permutation of a key, which is secret and is never
// changed as long as one code made with it lives.
func NewPermutation(key [32]byte) *Permutation {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(key[8*i:]) }
	return &Permutation{even: sipKey{word(0), word(1)}, odd: sipKey{word(2), word(3)}}
}

// Apply returns where id goes in [0, 62^length). It panics on a length or an id
// out of bounds, because an answer would break the promise that codes are unique.
func (p *Permutation) Apply(length int, id uint64) uint64 {
	return p.forward(spaceOf(length, id), id)
}

// Invert returns the id that Apply sends to v. It panics as Apply does.
func (p *Permutation) Invert(length int, v uint64) uint64 {
	return p.backward(spaceOf(length, v), v)
}

// Code returns the code of an id. It panics as Apply does.
func (p *Permutation) Code(length int, id uint64) link.Code {
	return encode62(length, p.Apply(length, id))
}

// ID returns the id whose code this is; the code's own length says which counter
// the id belongs to. ok is false when no id has this code: it is not base62 or not
// MinLength to MaxLength long.
func (p *Permutation) ID(code link.Code) (id uint64, ok bool) {
	v, ok := decode62(code)
	if !ok {
		return 0, false
	}
	return p.Invert(len(code), v), true
}

// space is a domain [0, size) and how the network covers it.
type space struct {
	size  uint64
	half  uint // bits of each half
	tweak uint8
}

func newSpace(size uint64, tweak uint8) space {
	return space{size: size, half: uint(bits.Len64(size-1)+1) / 2, tweak: tweak}
}

func spaceOf(length int, v uint64) space {
	s := newSpace(Space(length), uint8(length))
	if v >= s.size {
		panic("codegen: id beyond the code space")
	}
	return s
}

// forward walks the cycle of v until it is back in the space. It ends, because v
// itself lies in the space and on its own cycle.
func (p *Permutation) forward(s space, v uint64) uint64 {
	for {
		l, r := v>>s.half, v&(1<<s.half-1)
		for i := range uint8(rounds) {
			l, r = r, l^p.round(s, i, r)
		}
		if v = l<<s.half | r; v < s.size {
			return v
		}
	}
}

// backward undoes forward.
func (p *Permutation) backward(s space, v uint64) uint64 {
	for {
		l, r := v>>s.half, v&(1<<s.half-1)
		for i := uint8(rounds); i > 0; i-- {
			l, r = r^p.round(s, i-1, l), l
		}
		if v = l<<s.half | r; v < s.size {
			return v
		}
	}
}

// round is a keyed function of one half onto as many bits.
func (p *Permutation) round(s space, i uint8, half uint64) uint64 {
	k := p.even
	if i%2 == 1 {
		k = p.odd
	}
	var m [8]byte
	binary.LittleEndian.PutUint64(m[:], half|uint64(i)<<48|uint64(s.tweak)<<56)
	return siphash.Hash(k.k0, k.k1, m[:]) & (1<<s.half - 1)
}
