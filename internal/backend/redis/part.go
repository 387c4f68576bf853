package redis

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"

	"github.com/redis/rueidis"
)

// Part is what the filter of codes has of a connection: its calls, deadlines, breaker and namespace.
type Part struct{ c *Client }

// trial does once what a part does.
type trial func(context.Context, rueidis.Client) error

// NewPart returns the part, whose rights are tried like those of the others. It is called once, before Client.Run.
func NewPart(c *Client, try func(context.Context, rueidis.Client) error) Part {
	t := trial(try)
	c.tried.Store(&t)
	return Part{c}
}

// Call makes a call that a create waits for, or that no request waits for.
func (p Part) Call(ctx context.Context, waits bool, call func(context.Context, rueidis.Client) error) error {
	limit := p.c.limits.put
	if waits {
		limit = p.c.limits.spend
	}
	return p.c.guarded(ctx, filterCodes, limit, call)
}

// Key returns a key of the namespace.
func (p Part) Key(name string) string { return string(p.c.keys) + name }

// Secret returns 32 bytes that follow from Config.Key, for one purpose.
func (p Part) Secret(purpose string) []byte {
	mac := hmac.New(sha256.New, p.c.cfg.Key)
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// tryPart does nothing without a Part.
func tryPart(ctx context.Context, c *Client, conn rueidis.Client) error {
	if try := c.tried.Load(); try != nil {
		return (*try)(ctx, conn)
	}
	return nil
}
