package search

import (
	"context"
	"time"
)

// RestAfter returns how long an indexer rests that worked for a second, while so many
// creates and redirects come in each second.
func RestAfter(ctx context.Context, creates, redirects uint64) time.Duration {
	p := &pace{}
	p.look(0)
	time.Sleep(time.Second)
	p.creates.Add(creates)
	p.look(redirects)
	began := time.Now()
	p.rest(ctx, time.Second)
	return time.Since(began)
}
