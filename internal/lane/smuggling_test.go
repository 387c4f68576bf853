package lane_test

import (
	"strings"
	"testing"

	"curt/internal/lane/lanetest"
)

func smuggling() (all []string) {
	for _, s := range lanetest.Refused() {
		all = append(all, s)
	}
	for _, s := range lanetest.Foreign() {
		all = append(all, s)
	}
	return all
}

// TestForbiddenShapesAre400 sends each shape alone, behind an answered request, and with
// a request behind it that must not be answered.
func TestForbiddenShapesAre400(t *testing.T) {
	on := start(t, true)
	const good = "GET /live HTTP/1.1\r\nHost: links.example\r\n\r\n"
	for why, shape := range lanetest.Refused() {
		t.Run(why, func(t *testing.T) {
			for seed := range uint64(3) {
				if got := statuses(answers(t, on.exchange(t, lanetest.Cut(shape, seed)...))); got != "400" {
					t.Errorf("%q in pieces by %d: %s", shape, seed, got)
				}
				if got := statuses(answers(t, on.exchange(t, lanetest.Cut(shape+good, seed)...))); got != "400" {
					t.Errorf("%q with a request behind it: %s", shape, got)
				}
			}
			nc := on.dial(t)
			roundTrip(t, nc, good)
			if _, err := nc.Write([]byte(shape)); err != nil {
				t.Fatal(err)
			}
			_ = nc.CloseWrite()
			if got := statuses(answers(t, rest(t, nc))); got != "400" {
				t.Errorf("%q on a used connection: %s", shape, got)
			}
		})
	}
	on.rec.mu.Lock()
	defer on.rec.mu.Unlock()
	for _, c := range on.rec.clicks {
		if string(c.Code) != "live" || strings.Contains(string(c.Query), " ") {
			t.Errorf("click %+v", c)
		}
	}
}
