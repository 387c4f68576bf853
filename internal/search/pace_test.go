package search_test

import (
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/search"
)

// An indexer rests the longer the more others have to do.
func TestIndexersRest(t *testing.T) {
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
			if got := search.RestAfter(t.Context(), c.creates, c.redirects); got != c.want {
				t.Errorf("%s: rests for %s, want %s", name, got, c.want)
			}
		})
	}
}
