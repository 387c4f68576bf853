package shorten

import (
	"context"
	"fmt"

	"curt/internal/codegen"
	"curt/internal/link"
)

// maxCodes bounds the codes tried for one link. With a space that is half
// full, 20 misses in a row happen once in a million creates.
const maxCodes = 20

// code returns the next generated code that is no reserved or refused word, and counts
// the attempts. Any strategy can meet a code that is taken: it always takes the next.
func (c *Creator) code(ctx context.Context, need *codegen.Need) (link.Code, error) {
	for range maxCodes {
		code, err := c.codes.Next(ctx, *need)
		if err != nil {
			return "", fmt.Errorf("make a code: %w", err)
		}
		need.Attempt++
		if !Reserved(code) && c.rules.unwanted(string(code)) == nil {
			return code, nil
		}
	}
	return "", fmt.Errorf("%w: %d codes in a row were reserved", link.ErrUnavailable, maxCodes)
}

// burned tells a strategy that promised otherwise that its code was taken, and raises
// an alarm.
func (c *Creator) burned(code link.Code) {
	if c.codes.Promise() == codegen.Unique {
		c.codes.Burned(code)
		c.metrics.collisions.Inc()
	}
}
