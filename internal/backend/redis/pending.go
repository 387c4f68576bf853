package redis

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"curt/internal/link"
	"curt/internal/pending"
)

func (p prefix) pending(k link.Key) string { return string(p) + "p:" + k.String() }

// Pending is where servers share links that are not written yet: a pending.Shared. There is nobody else to ask, so that it
// waits longer than look-ups of links do.
type Pending struct{ c *Client }

var _ pending.Shared = Pending{}

// NewPending returns what a client shares.
func NewPending(c *Client) Pending { return Pending{c} }

// Share implements pending.Shared.
func (p Pending) Share(ctx context.Context, k link.Key, record []byte, life time.Duration) error {
	err := p.c.guarded(ctx, writeLinks, p.c.limits.put, func(ctx context.Context, conn rueidis.Client) error {
		return conn.Do(ctx, conn.B().Set().Key(p.c.keys.pending(k)).Value(rueidis.BinaryString(record)).Px(life).Build()).Error()
	})
	return wrap("share a pending link", err)
}

// Shared implements pending.Shared.
func (p Pending) Shared(ctx context.Context, k link.Key) (record []byte, found bool, err error) {
	err = p.c.guarded(ctx, readLinks, p.c.limits.put, func(ctx context.Context, conn rueidis.Client) error {
		var err error
		record, err = conn.Do(ctx, conn.B().Get().Key(p.c.keys.pending(k)).Build()).AsBytes()
		return err
	})
	if rueidis.IsRedisNil(err) {
		return nil, false, nil
	}
	return record, err == nil, wrap("get a pending link", err)
}
