package redis

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"curt/internal/ratelimit"
)

// try is in the place of links, and no link's: theirs have a slash.
func (p prefix) try() string { return string(p) + "l:try" }

func (c *Client) tryRead(ctx context.Context, conn rueidis.Client) error {
	err := conn.Do(ctx, conn.B().Get().Key(c.keys.try()).Build()).Error()
	if rueidis.IsRedisNil(err) {
		return nil
	}
	return err
}

// tryWrite leaves a key that ends within a second, and removes it where it may: a
// right that only tryLimits needs.
func (c *Client) tryWrite(ctx context.Context, conn rueidis.Client) error {
	if err := c.put.Exec(ctx, conn, []string{c.keys.try()}, []string{"try", "1000", "0"}).Error(); err != nil {
		return err
	}
	_ = conn.Do(ctx, conn.B().Del().Key(c.keys.try()).Build())
	return nil
}

// tryLimits spends a cell of a bucket and gives it back, which removes the bucket.
func (c *Client) tryLimits(ctx context.Context, conn rueidis.Client) error {
	l := Limiter{c: c, slack: bucketSlack}
	charge := ratelimit.Charge{Bucket: "try/try", Limit: ratelimit.Per(1000, time.Hour), Cost: 1}
	for _, cost := range []int{1, -1} {
		charge.Cost = cost
		if _, err := l.script(ctx, conn, time.Now(), []string{l.key(charge.Bucket)}, []ratelimit.Charge{charge}); err != nil {
			return err
		}
	}
	return nil
}

// tryTelling sends a note that nobody hears; releases that do not know it hear an empty one.
func (c *Client) tryTelling(ctx context.Context, conn rueidis.Client) error {
	return c.publish(ctx, conn, `{"try":true}`)
}

func (c *Client) tryHearing(ctx context.Context, conn rueidis.Client) error {
	own, release := conn.Dedicate()
	defer release()
	defer own.Close()
	return c.subscribe(ctx, conn, own)
}
