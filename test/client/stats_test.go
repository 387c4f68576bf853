package client_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt.example/client"
)

func TestStatsAsksForWhatWasChosen(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		want := "dimensions=country%2Ccity&domain=go.example&from=2026-03-01T00%3A00%3A00Z&interval=day&top=5&tz=Asia%2FKolkata"
		if r.URL.Path != "/api/v1/links/abc/stats" || r.URL.RawQuery != want {
			t.Errorf("asked %s?%s", r.URL.Path, r.URL.RawQuery)
		}
		if _, err := io.WriteString(w, `{"total_clicks":3,"top":{"country":[{"value":"IN","clicks":2}],"city":[]}}`); err != nil {
			t.Error(err)
		}
	})
	got, err := c.Stats(t.Context(), "abc", client.StatsQuery{
		Domain: "go.example", From: time.Date(2026, 3, 1, 5, 30, 0, 0, time.FixedZone("", 19800)), Interval: "day", Zone: "Asia/Kolkata",
		Dimensions: []string{"country", "city"}, Top: 5,
	})
	want := client.Stats{Counted: client.Counted{TotalClicks: 3, Top: map[string][]client.Value{"country": {{Value: "IN", Clicks: 2}}, "city": {}}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
