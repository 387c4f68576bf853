package shorten

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/codegen"
	"curt/internal/link"
)

// maxCodes bounds the codes tried for one link. With a space that is half
// full, 20 misses in a row happen once in a million creates.
const maxCodes = 20

// mint stores a link under a generated code. Any strategy can meet a code that is
// taken: it always takes the next.
func (c *Creator) mint(ctx context.Context, now time.Time, p *proposal, req *Request) (Made, error) {
	if req.Dedupe.Value && !p.unclean() {
		same, err := c.dedupe.FindSame(ctx, p.Link, now)
		if !errors.Is(err, link.ErrNotFound) {
			return Made{Link: same, Found: err == nil}, wrap("find the same link", err)
		}
	}
	p.CodeKind = c.codes.Kind()
	need := needOf(p.Link)
	for range maxCodes {
		var err error
		if p.Key.Code, err = c.code(ctx, &need); err != nil {
			return Made{}, err
		}
		made, err := c.place(ctx, now, p, req)
		if !errors.Is(err, link.ErrExists) {
			return made, err
		}
		c.burned(p.Key.Code)
	}
	return Made{}, fmt.Errorf("%w: %d codes in a row were taken", link.ErrUnavailable, maxCodes)
}

// needOf is what a strategy may make the link's code from.
func needOf(l link.Link) codegen.Need {
	return codegen.Need{Domain: l.Key.Domain, Workspace: l.Workspace, Destination: l.Destination}
}

// code returns the next generated code that is no reserved or refused word, and counts
// the attempts.
func (c *Creator) code(ctx context.Context, need *codegen.Need) (link.Code, error) {
	for range maxCodes {
		code, err := c.codes.Next(ctx, *need)
		if err != nil {
			return "", fmt.Errorf("make a code: %w", err)
		}
		need.Attempt++
		if !Reserved(code) && c.unwanted(string(code)) == nil {
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
