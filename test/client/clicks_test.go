package client_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt.example/client"
)

func TestClicksWalksPages(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		want := "cursor=abc&from=2026-03-01T00%3A00%3A00.5Z&limit=2"
		if r.URL.Path != "/api/v1/links/x/clicks" || r.URL.RawQuery != want {
			t.Errorf("asked %s?%s", r.URL.Path, r.URL.RawQuery)
		}
		if _, err := io.WriteString(w, `{"clicks":[{"outcome":"redirected","city":null,"country":"DE","visitor":"1f"}],"next_cursor":"def"}`); err != nil {
			t.Error(err)
		}
	})
	got, err := c.Clicks(t.Context(), "x", client.ClicksQuery{
		From: time.Date(2026, 3, 1, 0, 0, 0, 500_000_000, time.UTC), Limit: 2, Cursor: "abc",
	})
	want := client.ClickPage{Clicks: []client.Click{{Outcome: "redirected", Country: "DE", Visitor: "1f"}}, NextCursor: "def"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
