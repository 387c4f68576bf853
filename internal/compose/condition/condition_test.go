package condition

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/compose/pipeline"
	"curt/internal/httpapi/health"
)

// well is the condition of a server that nobody has to look at.
func well() health.Health {
	at := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	return health.Health{
		Status: healthy, StartedAt: at.Add(-time.Hour), At: at, Disk: health.DiskHealth{FreeBytes: new(uint64(50 << 30))},
		Clicks: health.ClickHealth{UpdatedAt: new(at.Add(-time.Second))}, Search: health.SearchHealth{Complete: true},
		Lists: []health.ListHealth{{Name: "blocklists", Entries: 7}}, CertificateExpiresAt: new(at.Add(60 * 24 * time.Hour)),
	}
}

func TestWhatAnOperatorShouldLookAtIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(*health.Health)
		want  map[string]bool // by name, whether it is grave
	}{
		"nothing":            {func(*health.Health) {}, map[string]bool{}},
		"unknown room":       {func(h *health.Health) { h.Disk.FreeBytes = nil }, map[string]bool{}},
		"no certificate":     {func(h *health.Health) { h.CertificateExpiresAt = nil }, map[string]bool{}},
		"just started":       {func(h *health.Health) { h.Clicks.UpdatedAt, h.StartedAt = nil, h.At.Add(-time.Second) }, map[string]bool{}},
		"draining":           {func(h *health.Health) { h.Status = "draining" }, map[string]bool{"not-ready": true}},
		"little room":        {func(h *health.Health) { *h.Disk.FreeBytes = 500 << 20 }, map[string]bool{"disk": false}},
		"no room":            {func(h *health.Health) { *h.Disk.FreeBytes = 0 }, map[string]bool{"disk": true}},
		"dropped and lost":   {func(h *health.Health) { h.Clicks.Dropped, h.Clicks.Lost = 1, 2 }, map[string]bool{"clicks-dropped": true, "clicks-lost": true}},
		"statistics behind":  {func(h *health.Health) { *h.Clicks.UpdatedAt = h.At.Add(-20 * time.Second) }, map[string]bool{"statistics-behind": false}},
		"never caught up":    {func(h *health.Health) { h.Clicks.UpdatedAt = nil }, map[string]bool{"statistics-behind": true}},
		"a damaged list":     {func(h *health.Health) { h.Lists[0].Unusable = 1 }, map[string]bool{"list-unusable": true}},
		"certificate soon":   {func(h *health.Health) { *h.CertificateExpiresAt = h.At.Add(10 * 24 * time.Hour) }, map[string]bool{"certificate": false}},
		"certificate ended":  {func(h *health.Health) { *h.CertificateExpiresAt = h.At.Add(-time.Hour) }, map[string]bool{"certificate": true}},
		"overdue":            {func(h *health.Health) { h.Reviews.Overdue = 3 }, map[string]bool{"reviews-overdue": false}},
		"counts in memory":   {func(h *health.Health) { h.Clicks.UnstoredSince = new(h.At.Add(-time.Minute)) }, map[string]bool{"statistics-not-stored": true}},
		"a damaged link":     {func(h *health.Health) { h.Links.Damaged, h.Links.Example = 1, "/abc" }, map[string]bool{"links-damaged": true}},
		"links unanswered":   {func(h *health.Health) { h.Cache.FailedAt = new(h.At.Add(-time.Minute)) }, map[string]bool{"links-unanswered": true}},
		"answered again":     {func(h *health.Health) { h.Cache.FailedAt = new(h.At.Add(-time.Hour)) }, map[string]bool{}},
		"searching in parts": {func(h *health.Health) { h.Search.Complete = false }, map[string]bool{"search-incomplete": false}},
	} {
		h := well()
		tt.spoil(&h)
		got := map[string]bool{}
		for _, c := range concerns(&h, pipeline.Sending{}) {
			got[c.Name] = c.Grave
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, tt := range map[string]struct {
		way  pipeline.Sending
		up   time.Duration
		want map[string]bool
	}{
		"counted here":              {pipeline.Sending{}, time.Hour, map[string]bool{}},
		"all is sent":               {pipeline.Sending{Sends: true, Reached: well().At.Add(-time.Second)}, time.Hour, map[string]bool{}},
		"ten seconds behind":        {pipeline.Sending{Sends: true, Reached: well().At.Add(-10 * time.Second)}, time.Hour, map[string]bool{}},
		"more than ten seconds":     {pipeline.Sending{Sends: true, Reached: well().At.Add(-10*time.Second - 1)}, time.Hour, map[string]bool{"clicks-unsent": false}},
		"a minute behind":           {pipeline.Sending{Sends: true, Reached: well().At.Add(-time.Minute)}, time.Hour, map[string]bool{"clicks-unsent": false}},
		"more than a minute":        {pipeline.Sending{Sends: true, Reached: well().At.Add(-time.Minute - 1)}, time.Hour, map[string]bool{"clicks-unsent": true}},
		"it fails now":              {pipeline.Sending{Sends: true, Failing: true, Reached: well().At}, time.Hour, map[string]bool{"clicks-unsent": false}},
		"it has just started":       {pipeline.Sending{Sends: true}, 2 * time.Second, map[string]bool{}},
		"nothing was ever taken":    {pipeline.Sending{Sends: true}, 2*time.Second + 1, map[string]bool{"clicks-unsent": true}},
		"nobody waits for it":       {pipeline.Sending{Sends: true, Reached: well().At, Unknown: true}, time.Hour, map[string]bool{"clicks-unknown": true}},
		"others have fallen silent": {pipeline.Sending{Silent: 1}, time.Hour, map[string]bool{"servers-silent": true}},
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
	if all := concerns(&h, pipeline.Sending{}); len(all) != 2 || !all[0].Grave {
		t.Errorf("the gravest is not the first: %+v", all)
	}
}
