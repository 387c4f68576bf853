package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/analytics"
	"curt/internal/clicks"
)

// TestWhatReleasesOfBeforeKeptIsShownPlain: rows of stores that releases wrote which let
// control characters and marks of direction through.
func TestWhatReleasesOfBeforeKeptIsShownPlain(t *testing.T) {
	s := newService(t)
	s.create(t, "admin", `{"long_url":"http://example.com","custom_alias":"abc"}`)
	c := seen()
	c.UTM, c.BotName = [5]string{"a\u202e\u0085b", "\u009b", "x\x1b", "ok", "\u2066=1"}, "bo\u202et"
	s.past.page.Clicks = []clicks.Click{c}
	s.stats.top = map[clicks.Dimension][]analytics.Row{clicks.UTMSource: {
		{Value: "ab", Clicks: 3}, {Value: "c", Clicks: 3}, {Value: "a\u202eb", Clicks: 2}, {Value: "\u0085c", Clicks: 1}, {Value: "\u202e", Clicks: 1},
	}}
	for _, path := range []string{"/clicks", "/clicks?format=csv", "/stats?dimensions=utm_source"} {
		got := string(s.do(t, "admin", http.MethodGet, collection+"/abc"+path, "").want(t, http.StatusOK).body)
		for _, unseen := range []string{"\u202e", "\\u202e", "\u0085", "\\u0085", "\u009b", "\x1b", "\\u001b", "\u2066"} {
			if strings.Contains(got, unseen) {
				t.Errorf("%s has %q:\n%s", path, unseen, got)
			}
		}
		if strings.Contains(path, "csv") && !strings.Contains(got, ",ab,,x,ok,'=1,") {
			t.Errorf("a formula behind a mark is run:\n%s", got)
		}
	}
	top, _ := s.do(t, "admin", http.MethodGet, collection+"/abc/stats?dimensions=utm_source", "").want(t, http.StatusOK).json(t)["top"].(map[string]any)
	want := []any{map[string]any{"value": "ab", "clicks": 5.0}, map[string]any{"value": "c", "clicks": 4.0}}
	if d := cmp.Diff(want, top["utm_source"]); d != "" {
		t.Errorf("sources (-want +got):\n%s", d)
	}
}
