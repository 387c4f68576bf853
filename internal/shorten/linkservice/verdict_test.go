package linkservice_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/abuse"
	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/shorten"
	"curt/internal/shorten/create"
	"curt/internal/shorten/edit"
	"curt/internal/shorten/linkservice"
)

// referrals are the Cases of a court: each call is noted, and its creates get the ids 1, 2, ….
type referrals struct {
	journal *journal
	calls   [][]moderation.BlockedCreate
}

func (r *referrals) Refer(_ context.Context, _ time.Time, all []moderation.BlockedCreate) []link.ID {
	if r.journal.inside.Load() != 0 {
		panic("a ban waits for a case")
	}
	r.calls = append(r.calls, all)
	ids := make([]link.ID, len(all))
	for i := range all {
		ids[i] = link.ID{15: byte(i + 1)}
	}
	return ids
}

// newReferring is a court with cases.
func newReferring(t *testing.T) (bench, *referrals, *journal) {
	t.Helper()
	r := &referrals{}
	b, _, j := newCourt(t, func(c *linkservice.Config) { c.Cases = r })
	r.journal, j.verdicts = j, map[string]moderation.Entry{}
	return b, r, j
}

func verdict(s link.Safety) moderation.Entry {
	return moderation.Entry{Sequence: 1, Link: link.ID{1}, Safety: s, Actor: "mod"}
}

func TestBlockedCreatesAreReferredOncePerDestination(t *testing.T) {
	b, r, _ := newReferring(t)
	const url = "https://blocked.example/"
	rows := []create.Row{{Request: to(url)}, {Request: to("https://example.com/")}, {Request: to(url)}, {Request: to(url + "2")}}
	if _, err := b.CreateMany(t.Context(), noon(), by(admin()), rows); err != nil {
		t.Fatal(err)
	}
	if len(r.calls) != 1 || len(r.calls[0]) != 2 || r.calls[0][0].URL != url || r.calls[0][0].Count != 2 || r.calls[0][1].Count != 1 {
		t.Fatalf("referred %+v", r.calls)
	}
	if one := r.calls[0][0]; one.Workspace != link.WorkspaceDefault || one.CreatedBy != admin().KeyID || one.Score != 80 || one.Host != "blocked.example" || one.Evidence == "" {
		t.Errorf("referred %+v", one)
	}
	for i, want := range []byte{1, 0, 1, 2} {
		refused, _ := errors.AsType[*shorten.HarmfulError](rows[i].Err)
		if want == 0 && rows[i].Err != nil || want != 0 && (refused == nil || refused.Case != link.ID{15: want}) {
			t.Errorf("row %d: %v", i, rows[i].Err)
		}
	}
	b.mustCreate(t, admin(), to("https://warn.example/"))
	if len(r.calls) != 1 {
		t.Errorf("an accepted create was referred: %+v", r.calls[1])
	}
	l := b.mustCreate(t, admin(), to("https://example.com/"))
	_, err := b.Update(t.Context(), noon(), by(admin()), l.Key, shorten.Match{}, &shorten.Change{Fields: shorten.Fields{LongURL: shorten.Value(url)}})
	if refused, ok := errors.AsType[*shorten.HarmfulError](err); !ok || refused.Case.IsZero() || len(r.calls) != 2 {
		t.Errorf("a change: %v, %d calls", err, len(r.calls))
	}
}

func TestAModeratorsVerdictHolds(t *testing.T) {
	b, r, j := newReferring(t)
	attempt := func(url string) (link.Link, *shorten.HarmfulError) {
		req := to(url)
		l, err := b.created(t.Context(), noon(), by(admin()), &req)
		refused, _ := errors.AsType[*shorten.HarmfulError](err)
		if err != nil && refused == nil {
			t.Fatal(err)
		}
		return l, refused
	}
	j.verdicts["https://blocked.example/allowed"] = verdict(link.Clean)
	if l, refused := attempt("https://blocked.example/allowed"); refused != nil || l.Safety != link.Clean || len(j.all()) != 0 {
		t.Errorf("an allowed destination: %v, %v", l.Safety, refused)
	}
	j.verdicts["https://quarantined.example/allowed"] = verdict(link.Clean)
	if l, _ := attempt("https://quarantined.example/allowed"); l.Safety != link.Clean {
		t.Errorf("an allowed destination with a lower score: %v", l.Safety)
	}
	j.verdicts["https://blocked.example/flagged"] = verdict(link.Warn)
	if l, refused := attempt("https://blocked.example/flagged"); refused != nil || l.Safety != link.Warn || len(j.all()) != 1 {
		t.Errorf("one that is allowed with a warning: %v, %v", l.Safety, refused)
	}
	for _, url := range []string{"https://blocked.example/refused", "https://example.com/refused"} { // whatever its score is today
		j.verdicts[url] = verdict(link.Blocked)
		if _, refused := attempt(url); refused == nil || refused.Case != verdict(0).Link {
			t.Errorf("%s: %v", url, refused)
		}
	}
	if len(r.calls) != 0 {
		t.Errorf("what a moderator has decided was referred: %+v", r.calls)
	}
}

// What a list or a rule of the operator blocks, no moderator allows, and none is bothered with.
func TestListsAreAboveVerdicts(t *testing.T) {
	r := &referrals{}
	b, _, j := newCourt(t, func(c *linkservice.Config) {
		c.Cases = r
		c.Judge = func(context.Context, time.Time, *abuse.Facts) abuse.Decision {
			return abuse.Decision{Safety: link.Blocked, Score: 100, Floor: link.Blocked}
		}
	})
	j.verdicts = map[string]moderation.Entry{"https://listed.example/": verdict(link.Clean)}
	for _, url := range []string{"https://listed.example/", "https://listed.example/2"} {
		req := to(url)
		_, err := b.created(t.Context(), noon(), by(admin()), &req)
		if refused, ok := errors.AsType[*shorten.HarmfulError](err); !ok || !refused.Case.IsZero() {
			t.Errorf("%s: %v", url, err)
		}
	}
	if len(r.calls) != 0 {
		t.Errorf("referred %+v", r.calls)
	}
}

func TestARecheckLeavesAllowedDestinationsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, j := newReferring(t)
		const allowed, withdrawn = "https://blocked.example/allowed", "https://blocked.example/withdrawn"
		j.verdicts[allowed], j.verdicts[withdrawn] = verdict(link.Clean), verdict(link.Clean)
		stays, goes := b.mustCreate(t, admin(), to(allowed)), b.mustCreate(t, admin(), to(withdrawn))
		delete(j.verdicts, withdrawn)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- b.NewRechecker(edit.RecheckConfig{Every: 24 * time.Hour}).Run(ctx) }()
		time.Sleep(time.Hour)
		for l, want := range map[link.Key]link.Safety{stays.Key: link.Clean, goes.Key: link.Blocked} {
			if now, err := b.store.Get(t.Context(), l); err != nil || now.Safety != want {
				t.Errorf("%s is %v, want %v; %v", l, now.Safety, want, err)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A batch that is repeated under its idempotency key judges rows again that were refused: what was allowed
// since is created, and a row that is created stays as it is when its destination is refused.
func TestARepeatedBatchFollowsTheVerdict(t *testing.T) {
	b, _, j := newReferring(t)
	const url = "https://blocked.example/"
	for name, rows := range map[string][]create.Row{
		"one refused": {{Request: to(url)}, {Request: to("https://example.com/")}},
		"all refused": {{Request: to(url)}, {Request: to(url + "2")}},
	} {
		j.verdicts = map[string]moderation.Entry{}
		send := func(errs ...error) (stored []link.Link) {
			t.Helper()
			sent := slices.Clone(rows)
			if _, err := b.CreateMany(t.Context(), noon(), under(name, member("acme", auth.LinksWrite)), sent); err != nil {
				t.Fatal(err)
			}
			for i := range sent {
				if !errors.Is(sent[i].Err, errs[i]) {
					t.Errorf("%s: row %d: %v, want %v", name, i, sent[i].Err, errs[i])
				}
				stored = append(stored, sent[i].Result.Link)
			}
			return stored
		}
		second := error(nil)
		if rows[1].Request.LongURL.Value != "https://example.com/" {
			second = shorten.ErrHarmful
		}
		first := send(shorten.ErrHarmful, second)
		j.verdicts[url] = verdict(link.Clean)
		then := send(nil, second)
		if then[0].Destination != url || then[1].Key != first[1].Key {
			t.Errorf("%s: %+v", name, then)
		}
		j.verdicts[url] = verdict(link.Blocked)
		if again := send(nil, second); again[0].Key != then[0].Key || again[0].ID != then[0].ID {
			t.Errorf("%s: %+v", name, again)
		}
	}
}
