package cache_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
	"curt/internal/link"
)

func TestTheLogSaysWhatALookUpWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines strings.Builder
		s := cachetest.NewSource()
		s.OnLookup(func(ctx context.Context, _ link.Key) error {
			<-ctx.Done()
			return fmt.Errorf("wait for a connection: %w", context.Cause(ctx))
		})
		c := newTiered(t, cache.Config{Log: slog.New(slog.NewTextHandler(&lines, nil))}, s)
		ask := func(n int) (logged string) {
			lines.Reset()
			for i := range n {
				_, _ = c.Lookup(t.Context(), key(fmt.Sprint("code", i)))
			}
			return lines.String()
		}
		first := ask(10)
		for _, want := range []string{"link look-up failed", "link=/code0", "waited=1s", "limit=1s", "wait for a connection: context deadline exceeded"} {
			if !strings.Contains(first, want) {
				t.Errorf("the log lacks %q:\n%s", want, first)
			}
		}
		if n := strings.Count(first, "\n"); n != 1 {
			t.Errorf("%d lines for ten failures in ten seconds, want 1:\n%s", n, first)
		}
		if later := ask(60); strings.Count(later, "\n") != 1 || !strings.Contains(later, "times=") {
			t.Errorf("want one line with a count in the next minute:\n%s", later)
		}
		s.OnLookup(nil)
		time.Sleep(time.Minute)
		if over := ask(2); strings.Count(over, "\n") != 1 || !strings.Contains(over, "link look-ups recovered") {
			t.Errorf("want one line that it is over:\n%s", over)
		}
	})
}
