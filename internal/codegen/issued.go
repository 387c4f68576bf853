package codegen

import (
	"context"
	"sync/atomic"

	"curt/internal/link"
)

// Issued tells codes that links may have from those that no link has. It saves inserts that must fail,
// and decides nothing: it may say yes of a code that is free, and no of one that is taken.
// It is safe for many goroutines, and never fails: where it cannot know it says no.
type Issued interface {
	// Contains reports whether a link may have the code, as far as this process knows. It costs no I/O.
	Contains(code link.Code) bool

	// Query reports the same of each code as far as all processes know. It may cost one round trip,
	// whatever the number of codes, and waits for that no longer than the insert would take.
	Query(ctx context.Context, codes ...link.Code) []bool
}

// nothing is the Issued that knows nothing.
type nothing struct{}

func (nothing) Contains(link.Code) bool { return false }

func (nothing) Query(_ context.Context, codes ...link.Code) []bool { return make([]bool, len(codes)) }

// askFor is for how many links codes are asked about after one that was taken.
const askFor = 64

// crowd says whether a question to Issued is worth its round trip. In a space of which a millionth is used
// a question for each code would cost more than the inserts that it saves; where codes are
// taken now and then it saves one of two.
type crowd struct{ left atomic.Int64 }

// met notes that a code was taken.
func (c *crowd) met() { c.left.Store(askFor) }

// worth reports whether to ask for the next code.
func (c *crowd) worth() bool {
	if c.left.Load() <= 0 {
		return false
	}
	c.left.Add(-1)
	return true
}

// passedOver bounds the codes that are drawn for one attempt and passed over: as many as the write
// path would have tried.
const passedOver = 20

// drawFree draws codes until one is not known to be taken. draw is given the attempt: those that were passed over
// count like inserts that failed, so that a crowded space makes codes longer.
func drawFree(ctx context.Context, issued Issued, c *crowd, attempt int, draw func(attempt int) (link.Code, error)) (link.Code, error) {
	if attempt > 0 {
		c.met()
	}
	ask := c.worth()
	for passed := 0; ; passed++ {
		code, err := draw(attempt + passed)
		if err != nil {
			return "", err
		}
		taken := issued.Contains(code)
		if !taken && ask {
			if taken = issued.Query(ctx, code)[0]; taken {
				c.met()
			}
		}
		if !taken || passed == passedOver {
			return code, nil
		}
	}
}
