package client_test

import (
	"io"
	"net/http"
	"slices"
	"testing"
)

func TestWatchingTellsEveryCount(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/links/abc/clicks/live" || r.URL.RawQuery != "domain=go.example" || r.Header.Get("Accept") == "application/json" {
			t.Errorf("asked %s?%s", r.URL.Path, r.URL.RawQuery)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if _, err := io.WriteString(w, "event: clicks\ndata: {\"clicks\":3}\n\n:\n\nevent: clicks\ndata: {\"clicks\":5}\n\n"); err != nil {
			t.Error(err)
		}
	})
	var told []uint64
	if err := c.WatchClicks(t.Context(), "abc", "go.example", func(n uint64) { told = append(told, n) }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(told, []uint64{3, 5}) {
		t.Errorf("told %v", told)
	}
}
