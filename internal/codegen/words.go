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
	grown             atomic.Uint64
}

// NewWords returns Words that draw from source, normally crypto/rand.Reader, which must be safe
// for many goroutines.
func NewWords(source io.Reader) *Words {
	return &Words{source: source, adjectives: strings.Fields(adjectives), nouns: strings.Fields(nouns)}
}

// Next draws a code. Of the need only Attempt matters. It wraps link.ErrUnavailable when the
// source fails.
func (w *Words) Next(_ context.Context, need Need) (link.Code, error) {
	low, numbers, first := uint64(10), uint64(90), uint64(1) // first = choices of the second adjective
	if need.Attempt >= growAfter {
		w.grown.Add(1)
		low, numbers = 1000, 9000
	}
	if need.Attempt >= 2*growAfter {
		first = uint64(len(w.adjectives))
	}
	a, n := uint64(len(w.adjectives)), uint64(len(w.nouns))
	v, err := draw(w.source, first*a*n*numbers)
	if err != nil {
		return "", fmt.Errorf("draw a code: %w: %w", link.ErrUnavailable, err)
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
