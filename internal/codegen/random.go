package codegen

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"sync/atomic"

	"curt/internal/link"
)

// growAfter codes of one link in a row that were taken make the next one longer.
// In a space that is a tenth full that happens to one link in 100,000, in one that
// is half full to one in 32.
const growAfter = 5

// Random is the strategy "random": each code is drawn from the whole space. Its
// promise is Likely. It needs no lease and knows nothing of other codes; whether a
// code is free is found out by the insert.
//
// A crowded space makes codes longer, instead of failing: after five taken codes a
// link's next one has a digit more, up to MaxLength.
//
// Codes that [Issued] knows are passed over, and count like those that were taken.
type Random struct {
	source io.Reader
	length int
	issued Issued
	crowd  crowd
	grown  atomic.Uint64
}

// NewRandom returns a Random that draws from source, normally crypto/rand.Reader,
// which must be safe for many goroutines. It panics on a length out of bounds.
func NewRandom(source io.Reader, length int) *Random {
	checkLength(length)
	return &Random{source: source, length: length, issued: nothing{}}
}

// Avoid has Next pass over codes that issued knows, and returns r. It is called before the first Next.
func (r *Random) Avoid(issued Issued) *Random {
	r.issued = issued
	return r
}

// Next draws a code. Of the need only Attempt matters. It wraps link.ErrUnavailable
// when the source fails.
func (r *Random) Next(ctx context.Context, need Need) (link.Code, error) {
	code, err := drawFree(ctx, r.issued, &r.crowd, need.Attempt, r.draw)
	if len(code) > r.length {
		r.grown.Add(1)
	}
	return code, err
}

func (r *Random) draw(attempt int) (link.Code, error) {
	length := grow(r.length, attempt)
	v, err := draw(r.source, Space(length))
	if err != nil {
		return "", link.Unavailable(fmt.Errorf("draw a code: %w", err))
	}
	return encode62(length, v), nil
}

// grow returns the length of the code of an attempt.
func grow(length, attempt int) int { return min(length+attempt/growAfter, MaxLength) }

// draw returns a number below n, each as likely as any other: what lies beyond n is
// thrown away, because a remainder would favour the low ones.
func draw(source io.Reader, n uint64) (uint64, error) {
	unused := bits.LeadingZeros64(n - 1)
	var b [8]byte
	for {
		if _, err := io.ReadFull(source, b[:]); err != nil {
			return 0, err
		}
		if v := binary.LittleEndian.Uint64(b[:]) >> unused; v < n {
			return v, nil
		}
	}
}

// Guarantee is Likely.
func (r *Random) Guarantee() Guarantee { return Likely }

// Kind is link.Chosen.
func (r *Random) Kind() link.CodeKind { return link.Chosen }

// Burned does nothing: nothing was promised.
func (r *Random) Burned(link.Code) {}

// Grown returns how many codes were longer than asked for, because shorter ones
// were taken.
func (r *Random) Grown() uint64 { return r.grown.Load() }
