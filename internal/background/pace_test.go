package background

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// An indexer pauses for longer the higher the load is.
func TestIndexersPause(t *testing.T) {
	for name, c := range map[string]struct {
		creates, redirects uint64
		want               time.Duration
	}{
		"nobody":                {0, 0, time.Millisecond},
		"hardly anybody":        {10, 100, time.Millisecond},
		"somebody makes links":  {11, 0, time.Second},
		"somebody follows them": {0, 101, time.Second},
		"a burst of creates":    {1001, 0, 19 * time.Second},
		"a burst of redirects":  {0, 10_001, 19 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			if got := pauseAfter(t.Context(), c.creates, c.redirects); got != c.want {
				t.Errorf("%s: pauses for %s, want %s", name, got, c.want)
			}
		})
	}
}

// pauseAfter returns how long an indexer pauses that worked for a second, while so many
// creates and redirects come in each second.
func pauseAfter(ctx context.Context, creates, redirects uint64) time.Duration {
	p := &Pace{}
	p.measure(0)
	time.Sleep(time.Second)
	p.creates.Add(creates)
	p.measure(redirects)
	began := time.Now()
	p.Pause(ctx, time.Second)
	return time.Since(began)
}
