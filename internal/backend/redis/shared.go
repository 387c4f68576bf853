package redis

import (
	"context"
	_ "embed"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"curt/internal/cache"
	"curt/internal/link"
	"curt/internal/pending"
)

//go:embed put.lua
var putSource string

func (p prefix) link(k link.Key) string { return string(p) + "l:" + k.String() }

// Get implements cache.Shared.
func (c *Client) Get(ctx context.Context, k link.Key) (cache.Entry, bool, error) {
	var held []byte
	err := c.guarded(ctx, readLinks, c.limits.get, func(ctx context.Context, conn rueidis.Client) error {
		var err error
		held, err = conn.Do(ctx, conn.B().Get().Key(c.keys.link(k)).Build()).AsBytes()
		return err
	})
	if rueidis.IsRedisNil(err) {
		return cache.Entry{}, false, nil
	}
	if err != nil {
		return cache.Entry{}, false, wrap("get a link", err)
	}
	e, ok := decode(held)
	if !ok {
		c.counts.unreadable.Add(1)
	}
	return e, ok && time.Now().Before(e.Until), nil // Redis' clock is not ours
}

// Put implements cache.Shared.
func (c *Client) Put(ctx context.Context, k link.Key, e cache.Entry) error {
	left := time.Until(e.Until).Milliseconds()
	if left <= 0 {
		return nil
	}
	value, err := encode(e)
	if err != nil {
		return wrap("put a link", err)
	}
	mark := "0"
	if e.Void {
		mark = "1"
	}
	err = c.guarded(ctx, writeLinks, c.limits.put, func(ctx context.Context, conn rueidis.Client) error {
		return c.put.Exec(ctx, conn, []string{c.keys.link(k)}, []string{rueidis.BinaryString(value), strconv.FormatInt(left, 10), mark}).Error()
	})
	return wrap("put a link", err)
}

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
