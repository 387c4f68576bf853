package linkservice_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"curt/internal/abuse"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/shorten"
	"curt/internal/shorten/linkservice"
)

// journal is a Journal and a Moderator.
type journal struct {
	store   link.Store
	bans    map[moderation.Entity]bool // set once
	mu      sync.Mutex
	entries []moderation.Entry // guarded by mu
	batches int                // guarded by mu: calls of Append
	err     error              // guarded by mu: of the next Append
	lost    bool               // guarded by mu: that Append happened all the same
	inside  atomic.Int64

	verdicts map[string]moderation.Entry // by URL; set before it is used, or by withdraw
}

func (j *journal) Append(_ context.Context, entries ...moderation.Entry) ([]moderation.Entry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range entries {
		if err := entries[i].Validate(); err != nil {
			return nil, err
		}
	}
	err := j.err
	j.err = nil
	if err == nil || j.lost {
		j.entries = append(j.entries, entries...)
		j.batches++
	}
	return entries, err
}

func (j *journal) EffectiveDecision(_ context.Context, id link.ID) (moderation.Entry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range slices.Backward(j.entries) {
		if e.Link == id {
			return e, nil
		}
	}
	return moderation.Entry{}, moderation.ErrNotFound
}

func (j *journal) BeginWrite() (leave func()) {
	j.inside.Add(1)
	return func() { j.inside.Add(-1) }
}

func (j *journal) Verdict(_ link.WorkspaceID, url string) (verdict moderation.Entry, decided bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	verdict, decided = j.verdicts[url]
	return verdict, decided
}

// withdraw forgets all verdicts.
func (j *journal) withdraw() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.verdicts = nil
}

func (j *journal) CheckBan(f *abuse.Facts) (ban moderation.Entry, barred bool) {
	if j.inside.Load() == 0 {
		panic("asked by somebody who did not enter")
	}
	for _, e := range []moderation.Entity{
		{Kind: moderation.KindWorkspace, Name: string(f.Workspace)},
		{Kind: moderation.KindKey, Name: f.Creator},
		{Kind: moderation.KindNetwork, Name: f.Network.String()},
		{Kind: moderation.KindHost, Name: f.URL.Host()},
	} {
		if j.bans[e] {
			return moderation.Entry{Entity: e, Safety: link.Blocked}, true
		}
	}
	return ban, false
}

func (j *journal) Apply(ctx context.Context, _ time.Time, k link.Key) (link.Link, error) {
	return link.Update(ctx, j.store, k, "tester", func(l *link.Link) error {
		e, err := j.EffectiveDecision(ctx, l.ID)
		l.Safety = e.Safety
		return err
	})
}

// all returns the entries.
func (j *journal) all() []moderation.Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}

// judges is a Judge by the host of a URL: "warn.example", "quarantined.example" and
// "blocked.example" are what they say.
type judges struct {
	mu    sync.Mutex
	asked []abuse.Facts // guarded by mu
}

func (j *judges) judge(_ context.Context, _ time.Time, f *abuse.Facts) abuse.Decision {
	j.mu.Lock()
	j.asked = append(j.asked, *f)
	j.mu.Unlock()
	d := abuse.Decision{Safety: link.Clean}
	for s, name := range map[link.Safety]string{link.Warn: "warn", link.Quarantined: "quarantined", link.Blocked: "blocked"} {
		if f.URL.Host() == name+".example" {
			d = abuse.Decision{Safety: s, Score: 20 * int(s), Findings: []abuse.Finding{{Signal: abuse.LookAlike, Points: 65, Evidence: name}}}
		}
	}
	return d
}

// newCourt is a Creator with a judge and a journal.
func newCourt(t *testing.T, change ...func(*linkservice.Config)) (bench, *judges, *journal) {
	t.Helper()
	who, written := &judges{}, &journal{bans: map[moderation.Entity]bool{}}
	return newBench(t, append([]func(*linkservice.Config){func(c *linkservice.Config) {
		c.Judge, c.Moderator, c.Journal, written.store = who.judge, written, written, c.Store
		c.Country = func(a netip.Addr) string { return map[bool]string{true: "DE"}[a.Unmap().Is4()] }
	}}, change...)...), who, written
}

func leading(url, fallback string) shorten.Request {
	req := to(url)
	if fallback != "" {
		req.Fallback = shorten.Value(fallback)
	}
	return req
}

// wantEntry checks that the last entry is about a link as it stands.
func wantEntry(t *testing.T, j *journal, n int, l link.Link, field string) {
	t.Helper()
	all := j.all()
	if len(all) != n {
		t.Fatalf("%d entries, want %d", len(all), n)
	}
	e := all[n-1]
	var found []abuse.Finding
	if err := json.Unmarshal([]byte(e.Evidence.Body), &found); err != nil || len(found) != 1 || found[0].Points != 65 {
		t.Errorf("evidence %q: %v", e.Evidence.Body, err)
	}
	if e.Entity != moderation.OfLink(l.Key) || e.Link != l.ID || e.Action != moderation.ActionDecide || e.Safety != l.Safety ||
		e.Score != 20*int(l.Safety) || e.Actor != moderation.ActorPolicy || e.Reason.Body != field || e.Reason.Salt == e.Evidence.Salt {
		t.Errorf("%+v about %+v", e, l)
	}
}
