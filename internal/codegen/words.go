package codegen

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"curt/internal/link"
)

//go:embed adjectives.txt
var adjectives string

//go:embed nouns.txt
var nouns string

// Words is the strategy "words": an adjective, a noun and a number of two digits, such as
// brave-otter-42. Its promise is Likely. The first form has 4.9 million codes, so somebody who
// tries codes at random finds links: it is for codes that people say aloud, not for secrets.
//
// Where five codes of one link were taken, the number has four digits (490 million codes), and
// after five more there is a second adjective before the first (118 billion).
type Words struct {
	source            io.Reader
	adjectives, nouns []string
	issued            Issued
	crowd             crowd
	grown             atomic.Uint64
}

// NewWords returns Words that draw from source, normally crypto/rand.Reader, which must be safe
// for many goroutines.
func NewWords(source io.Reader) *Words {
	return &Words{source: source, adjectives: strings.Fields(adjectives), nouns: strings.Fields(nouns), issued: nothing{}}
}

// Avoid has Next pass over codes that issued knows, and returns w. It is called before the first Next.
func (w *Words) Avoid(issued Issued) *Words {
	w.issued = issued
	return w
}

// numbers of the first form: two digits.
const numbers = 90

// Space returns how many codes the first form has.
func (w *Words) Space() uint64 { return uint64(len(w.adjectives)) * uint64(len(w.nouns)) * numbers }

// Next draws a code that is not known to be taken. Of the need only Attempt matters. It wraps
// link.ErrUnavailable when the source fails.
func (w *Words) Next(ctx context.Context, need Need) (link.Code, error) {
	grown := false
	code, err := drawFree(ctx, w.issued, &w.crowd, need.Attempt, func(attempt int) (link.Code, error) {
		grown = attempt >= growAfter
		return w.draw(attempt)
	})
	if grown && err == nil {
		w.grown.Add(1)
	}
	return code, err
}

func (w *Words) draw(attempt int) (link.Code, error) {
	low, numbers, first := uint64(10), uint64(numbers), uint64(1) // first = choices of the second adjective
	if attempt >= growAfter {
		low, numbers = 1000, 9000
	}
	if attempt >= 2*growAfter {
		first = uint64(len(w.adjectives))
	}
	a, n := uint64(len(w.adjectives)), uint64(len(w.nouns))
	v, err := draw(w.source, first*a*n*numbers)
	if err != nil {
		return "", link.Unavailable(fmt.Errorf("draw a code: %w", err))
	}
	number := low + v%numbers
	v /= numbers
	noun := w.nouns[v%n]
	v /= n
	code := fmt.Sprintf("%s-%s-%d", w.adjectives[v%a], noun, number)
	if first > 1 {
		code = w.adjectives[v/a] + "-" + code
	}
	return link.Code(code), nil
}

// Guarantee is Likely.
func (w *Words) Guarantee() Guarantee { return Likely }

// Kind is link.Chosen.
func (w *Words) Kind() link.CodeKind { return link.Chosen }

// Burned does nothing: nothing was promised.
func (w *Words) Burned(link.Code) {}

// Grown returns how many codes were longer than the first form, because shorter ones were taken.
func (w *Words) Grown() uint64 { return w.grown.Load() }
