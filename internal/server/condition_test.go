package server

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/httpapi"
)

// well is the condition of a server that nobody has to look at.
func well() httpapi.Health {
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	return httpapi.Health{
		Status: healthy, StartedAt: at.Add(-time.Hour), At: at, Disk: httpapi.DiskHealth{FreeBytes: new(uint64(50 << 30))},
		Clicks: httpapi.ClickHealth{UpdatedAt: new(at.Add(-time.Second))}, Search: httpapi.SearchHealth{Complete: true},
		Lists: []httpapi.ListHealth{{Name: "blocklists", Entries: 7}}, CertificateExpiresAt: new(at.Add(60 * 24 * time.Hour)),
	}
}

func TestWhatAnOperatorShouldLookAtIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(*httpapi.Health)
		want  map[string]bool // by name, whether it is grave
	}{
		"nothing":            {func(*httpapi.Health) {}, map[string]bool{}},
		"unknown room":       {func(h *httpapi.Health) { h.Disk.FreeBytes = nil }, map[string]bool{}},
		"no certificate":     {func(h *httpapi.Health) { h.CertificateExpiresAt = nil }, map[string]bool{}},
		"just started":       {func(h *httpapi.Health) { h.Clicks.UpdatedAt, h.StartedAt = nil, h.At.Add(-time.Second) }, map[string]bool{}},
		"draining":           {func(h *httpapi.Health) { h.Status = "draining" }, map[string]bool{"not-ready": true}},
		"little room":        {func(h *httpapi.Health) { *h.Disk.FreeBytes = 500 << 20 }, map[string]bool{"disk": false}},
		"no room":            {func(h *httpapi.Health) { *h.Disk.FreeBytes = 0 }, map[string]bool{"disk": true}},
		"dropped and lost":   {func(h *httpapi.Health) { h.Clicks.Dropped, h.Clicks.Lost = 1, 2 }, map[string]bool{"clicks-dropped": true, "clicks-lost": true}},
		"statistics behind":  {func(h *httpapi.Health) { *h.Clicks.UpdatedAt = h.At.Add(-20 * time.Second) }, map[string]bool{"statistics-behind": false}},
		"never caught up":    {func(h *httpapi.Health) { h.Clicks.UpdatedAt = nil }, map[string]bool{"statistics-behind": true}},
		"a damaged list":     {func(h *httpapi.Health) { h.Lists[0].Unusable = 1 }, map[string]bool{"list-unusable": true}},
		"certificate soon":   {func(h *httpapi.Health) { *h.CertificateExpiresAt = h.At.Add(10 * 24 * time.Hour) }, map[string]bool{"certificate": false}},
		"certificate ended":  {func(h *httpapi.Health) { *h.CertificateExpiresAt = h.At.Add(-time.Hour) }, map[string]bool{"certificate": true}},
		"overdue":            {func(h *httpapi.Health) { h.Reviews.Overdue = 3 }, map[string]bool{"reviews-overdue": false}},
		"counts in memory":   {func(h *httpapi.Health) { h.Clicks.UnstoredSince = new(h.At.Add(-time.Minute)) }, map[string]bool{"statistics-not-stored": true}},
		"a damaged link":     {func(h *httpapi.Health) { h.Links.Damaged, h.Links.Example = 1, "/abc" }, map[string]bool{"links-damaged": true}},
		"links unanswered":   {func(h *httpapi.Health) { h.Cache.FailedAt = new(h.At.Add(-time.Minute)) }, map[string]bool{"links-unanswered": true}},
		"answered again":     {func(h *httpapi.Health) { h.Cache.FailedAt = new(h.At.Add(-time.Hour)) }, map[string]bool{}},
		"searching in parts": {func(h *httpapi.Health) { h.Search.Complete = false }, map[string]bool{"search-incomplete": false}},
	} {
		h := well()
		tt.spoil(&h)
		got := map[string]bool{}
		for _, c := range concerns(&h, sending{}) {
			got[c.Name] = c.Grave
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, tt := range map[string]struct {
		way  sending
		up   time.Duration
		want map[string]bool
	}{
		"counted here":              {sending{}, time.Hour, map[string]bool{}},
		"all is sent":               {sending{sends: true, reached: well().At.Add(-time.Second)}, time.Hour, map[string]bool{}},
		"ten seconds behind":        {sending{sends: true, reached: well().At.Add(-10 * time.Second)}, time.Hour, map[string]bool{}},
		"more than ten seconds":     {sending{sends: true, reached: well().At.Add(-10*time.Second - 1)}, time.Hour, map[string]bool{"clicks-unsent": false}},
		"a minute behind":           {sending{sends: true, reached: well().At.Add(-time.Minute)}, time.Hour, map[string]bool{"clicks-unsent": false}},
		"more than a minute":        {sending{sends: true, reached: well().At.Add(-time.Minute - 1)}, time.Hour, map[string]bool{"clicks-unsent": true}},
		"it fails now":              {sending{sends: true, failing: true, reached: well().At}, time.Hour, map[string]bool{"clicks-unsent": false}},
		"it has just started":       {sending{sends: true}, 2 * time.Second, map[string]bool{}},
		"nothing was ever taken":    {sending{sends: true}, 2*time.Second + 1, map[string]bool{"clicks-unsent": true}},
		"nobody waits for it":       {sending{sends: true, reached: well().At, unknown: true}, time.Hour, map[string]bool{"clicks-unknown": true}},
		"others have fallen silent": {sending{silent: 1}, time.Hour, map[string]bool{"servers-silent": true}},
	} {
		h := well()
		h.StartedAt = h.At.Add(-tt.up)
		got := map[string]bool{}
		for _, c := range concerns(&h, tt.way) {
			got[c.Name] = c.Grave
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	h := well()
	h.Search.Complete, h.Clicks.Lost = false, 1
	if all := concerns(&h, sending{}); len(all) != 2 || !all[0].Grave {
		t.Errorf("the gravest is not the first: %+v", all)
	}
}
