package codegen

import (
	"context"
	"encoding/binary"
	"io"
	"math/bits"

	"github.com/dchest/siphash"

	"curt/internal/link"
)

// salts of a destination are tried before its codes are drawn like those of Random.
// Whoever makes one link after the other to the same address pays for at most so
// many digests of 0.1 µs, and never runs out of codes.
const salts = 16

// HashConfig says how a Hash makes codes.
type HashConfig struct {
	// Key is secret and the same for good: with it, anybody could compute the code
	// of any address and see whether somebody made a link to it.
	Key [16]byte

	Length int // of the codes: MinLength to MaxLength

	Issued Issued // nil = nothing is known

	// Random is the source of codes once the salts are used up, as for NewRandom.
	Random io.Reader
}

// Hash is the strategy "hash": the code is a keyed digest of domain, workspace and
// destination modulo the code space. Its promise is Likely.
//
// The first link of a workspace to a destination has the destination's own code,
// that of salt 0, unless another link came upon it first. A further link to the same
// destination is a link of its own and has a code of its own, that of the next salt
// that is free: the same address leads to the same link only for a caller who asks
// for that (dedupe). A deleted link keeps its code, so the link that
// comes after it has another.
//
// Salts whose code [Issued] knows are passed over, so that a destination that comes
// again costs no insert that must fail.
type Hash struct {
	k0, k1 uint64
	length int
	issued Issued
	random *Random
}

// NewHash returns a Hash. It panics on a length out of bounds.
func NewHash(c HashConfig) *Hash {
	if c.Issued == nil {
		c.Issued = nothing{}
	}
	return &Hash{
		k0: binary.LittleEndian.Uint64(c.Key[:]), k1: binary.LittleEndian.Uint64(c.Key[8:]),
		length: c.Length, issued: c.Issued, random: NewRandom(c.Random, c.Length).Avoid(c.Issued),
	}
}

// Unseen implements FirstChecker: it asks Issued about the code of salt 0.
func (h *Hash) Unseen(ctx context.Context, need Need) bool {
	return !h.mayExist(ctx, h.code(need, 0))[0]
}

// Next returns the code of the first salt that is not known to be taken, after as
// many others as there were attempts. Errors are those of Random.
func (h *Hash) Next(ctx context.Context, need Need) (link.Code, error) {
	first := h.code(need, 0)
	if need.Attempt == 0 && (need.Unseen || !h.mayExist(ctx, first)[0]) {
		return first, nil
	}
	codes := make([]link.Code, salts)
	codes[0] = first
	for salt := 1; salt < salts; salt++ {
		codes[salt] = h.code(need, uint64(salt))
	}
	free := 0
	for salt, known := range h.mayExist(ctx, codes...) {
		if known {
			continue
		}
		if free == need.Attempt {
			return codes[salt], nil
		}
		free++
	}
	return h.random.Next(ctx, need)
}

// mayExist asks other processes about those codes only that this one does not know.
func (h *Hash) mayExist(ctx context.Context, codes ...link.Code) []bool {
	known := make([]bool, len(codes))
	var rest []link.Code
	var at []int
	for i, code := range codes {
		if known[i] = h.issued.Contains(code); !known[i] {
			rest, at = append(rest, code), append(at, i)
		}
	}
	if len(rest) > 0 {
		for i, held := range h.issued.Query(ctx, rest...) {
			known[at[i]] = held
		}
	}
	return known
}

// code returns the code of a salt. The digest is SipHash-2-4 with 128 bits, for the
// reasons of Permutation. They are reduced modulo the space, of which the largest has
// 60: no code is likelier than another by more than 2^-68. Bits taken off the digest and written as digits do not do: 43
// bits, which are said to fit seven digits, are 2.5 times as many numbers.
func (h *Hash) code(need Need, salt uint64) link.Code {
	text := make([]byte, 0, 512) // most needs; a longer one takes another allocation
	for _, field := range []string{string(need.Domain), string(need.Workspace), need.Destination} {
		// Each with its length, so that no two needs are one text.
		text = binary.AppendUvarint(text, uint64(len(field)))
		text = append(text, field...)
	}
	text = binary.LittleEndian.AppendUint64(text, salt)
	hi, lo := siphash.Hash128(h.k0, h.k1, text)
	space := Space(h.length)
	_, v := bits.Div64(hi%space, lo, space)
	return encode62(h.length, v)
}

// Guarantee is Likely.
func (h *Hash) Guarantee() Guarantee { return Likely }

// Kind is link.Chosen.
func (h *Hash) Kind() link.CodeKind { return link.Chosen }

// Burned does nothing: nothing was promised.
func (h *Hash) Burned(link.Code) {}

// Grown returns how many codes were longer than asked for, because shorter ones
// were taken.
func (h *Hash) Grown() uint64 { return h.random.Grown() }
