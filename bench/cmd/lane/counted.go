package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// counts are what curt says of its statistics.
type counts struct{ captured, clicks, batches uint64 }

// counted reads them; of another server there are none.
func (b *bench) counted(ctx context.Context, s *server) (c counts, err error) {
	if s.name != "curt" {
		return counts{}, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.admin+"/metrics", http.NoBody)
	if err != nil {
		return counts{}, fmt.Errorf("ask for metrics: %w", err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return counts{}, fmt.Errorf("ask for metrics: %w", err)
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	var captured, clicks, batches float64
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		for name, value := range map[string]*float64{
			"curt_clicks_captured_total ": &captured, "curt_clicks_counted_total ": &clicks, "curt_click_batches_total ": &batches,
		} {
			if rest, ok := strings.CutPrefix(lines.Text(), name); ok {
				if _, err := fmt.Sscan(rest, value); err != nil {
					return counts{}, fmt.Errorf("read %s: %w", name, err)
				}
			}
		}
	}
	return counts{uint64(captured), uint64(clicks), uint64(batches)}, lines.Err()
}

// quiet waits until every click so far is counted, and returns how many were. A second
// is far more than a click stays in the ring.
func (b *bench) quiet(ctx context.Context, s *server) (counts, error) {
	for last := ^uint64(0); ; {
		c, err := b.counted(ctx, s)
		if err != nil || c.clicks == last && c.clicks == c.captured || s.name != "curt" {
			return c, err
		}
		last = c.clicks
		select {
		case <-ctx.Done():
			return c, fmt.Errorf("wait for the statistics: %w", context.Cause(ctx))
		case <-time.After(time.Second):
		}
	}
}

// lastBatch is how long the batch with the last clicks may take: Fold's interval, and
// the writing. When none came, the one before had them.
const lastBatch = 25 * time.Second

// await returns once so many clicks are counted, and all of them written: with the
// batch that comes after. More than asked for is an error.
func (b *bench) await(ctx context.Context, s *server, clicks uint64) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	written, seen := uint64(0), time.Time{}
	for {
		c, err := b.counted(ctx, s)
		switch {
		case err != nil:
			return fmt.Errorf("wait for the statistics: %w", err)
		case clicks > 0 && c.clicks > clicks:
			return fmt.Errorf("%d clicks are counted, %d were answered", c.clicks, clicks)
		case c.clicks >= clicks && written == 0:
			written, seen = c.batches+1, time.Now()
		case written > 0 && (c.batches >= written || time.Since(seen) > lastBatch):
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %d clicks, %d are counted: %w", clicks, c.clicks, context.Cause(ctx))
		case <-time.After(200 * time.Millisecond):
		}
	}
}
