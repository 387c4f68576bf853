package review_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
	"curt/internal/moderation/moderator"
	"curt/internal/review"
)

const refusedURL = "https://evil.example/sign-in"

// blocked is a create of acme that the score blocked.
func blocked(url string) moderation.BlockedCreate {
	return moderation.BlockedCreate{
		Workspace: "acme", CreatedBy: "own", Network: netip.MustParsePrefix("192.0.2.1/32"), URL: url, Host: "evil.example",
		Score: 95, Evidence: `[{"signal":"look_alike","points":65}]`, Count: 1,
	}
}

// refer returns the case of a refused create.
func (o office) refer(t *testing.T, b moderation.BlockedCreate) link.ID {
	t.Helper()
	return o.Refer(t.Context(), noon(), []moderation.BlockedCreate{b})[0]
}

// mortalDestinations and mortalJournal share the life of a desk.
type mortalDestinations struct {
	moderation.Destinations

	m *mortal
}

func (d mortalDestinations) Refuse(ctx context.Context, all []moderation.Refusal, b moderation.Bounds) (ids []link.ID, err error) {
	err = d.m.call(func() error { ids, err = d.Destinations.Refuse(ctx, all, b); return err })
	return ids, err
}

type mortalJournal struct {
	*moderationtest.Memory

	m *mortal
}

func (j mortalJournal) Append(ctx context.Context, entries ...moderation.Entry) (stored []moderation.Entry, err error) {
	err = j.m.call(func() error { stored, err = j.Memory.Append(ctx, entries...); return err })
	return stored, err
}

// begin is a process on the same stores that lives for so many writes.
func (o office) begin(t *testing.T, calls int, behind bool) (office, *mortal) {
	t.Helper()
	m := &mortal{Cases: o.cases, Journal: o.journal, calls: calls, behind: behind}
	o.moderator = nil
	another, err := moderator.Open(t.Context(), moderator.Config{
		Journal: mortalJournal{o.journal, m}, Progress: o.journal, Links: o.links, Random: rand.Reader, Now: noon,
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Service = newOffice(t, func(c *review.Config) {
		c.Cases, c.Appeals, c.Destinations, c.Journal, c.Moderator, c.Links = m, o.cases, mortalDestinations{o.cases, m}, m, another, o.links
	}).Service
	o.moderator = another
	return o, m
}

// A process is killed at each of its steps, before it or behind it with nobody told: a case is
// written, a decision is on the journal, the case is closed, the journal is followed. The next process
// finds one case, and what the journal says holds.
func TestACaseSurvivesAKillBetweenAnyTwoSteps(t *testing.T) {
	for _, behind := range []bool{false, true} {
		deaths := 0
		for calls := 1; ; calls++ {
			o := newOffice(t)
			first, m := o.begin(t, calls, behind)
			ruling := review.CaseRuling{Safety: link.Clean, Reason: "harmless"}
			if ruling.ID = first.refer(t, blocked(refusedURL)); !m.died {
				_, _ = first.DecideCase(t.Context(), noon(), admin(), ruling)
			}
			if !m.died {
				_ = first.Turn(t.Context(), noon())
			}
			if !m.died {
				break
			}
			deaths++
			second, _ := o.begin(t, 1<<30, false)
			verdict, decided := second.moderator.Verdict("acme", refusedURL)
			if !decided { // the create is sent again, and the moderator decides
				ruling.ID = second.refer(t, blocked(refusedURL))
				if _, err := second.DecideCase(t.Context(), noon(), admin(), ruling); err != nil {
					t.Fatalf("after %d calls: %v", calls, err)
				}
				verdict, _ = second.moderator.Verdict("acme", refusedURL)
			}
			if err := second.Turn(t.Context(), noon()); err != nil {
				t.Fatal(err)
			}
			d, err := o.cases.Destination(t.Context(), verdict.Link)
			if err != nil || d.Decided != link.Clean || d.Sequence != verdict.Sequence {
				t.Errorf("after %d calls: %+v, %v; the verdict is %+v", calls, d, err, verdict)
			}
			entries, err := o.journal.Read(t.Context(), 0, 10)
			if all := allCases(t, o.cases); err != nil || len(entries) != 1 || len(all) != 1 || all[0].Sequence != 1 || all[0].Decided != link.Clean {
				t.Errorf("after %d calls: %d entries, cases %+v, %v", calls, len(entries), all, err)
			}
		}
		if deaths < 6 {
			t.Errorf("only %d deaths", deaths)
		}
	}
}

func TestAnAppealOpensADecidedCaseOnce(t *testing.T) {
	o, ctx := newOffice(t), t.Context()
	id := o.refer(t, blocked(refusedURL))
	decide := func(s link.Safety, reply bool) {
		t.Helper()
		if _, err := o.DecideCase(ctx, noon(), admin(), review.CaseRuling{ID: id, Safety: s, Reason: "as it is", Reply: reply}); err != nil {
			t.Fatal(err)
		}
	}
	decide(link.Blocked, false)
	token, err := o.AppealCase(ctx, noon().Add(time.Minute), owner(), id, "it is ours")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.AppealCase(ctx, noon(), owner(), id, "again"); !errors.Is(err, moderation.ErrAppealed) {
		t.Errorf("twice: %v", err)
	}
	rows, _, err := o.List(ctx, admin(), moderation.CaseFilter{Source: moderation.FromBlock}, moderation.CasePage{Limit: 10})
	if err != nil || len(rows) != 1 || rows[0].Case.Sources != moderation.FromBlock|moderation.FromAppeal || rows[0].Link != nil {
		t.Fatalf("%+v, %v", rows, err)
	}
	if _, err := o.DecideCase(ctx, noon().Add(2*time.Minute), admin(), review.CaseRuling{ID: id, Safety: link.Blocked, Reason: "it is not", Reply: true}); err != nil {
		t.Fatal(err)
	}
	if a, err := o.AppealBy(ctx, token); err != nil || a.IsOpen() || a.Answer != "it is not" || a.Safety != link.Blocked {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := o.AppealCase(ctx, noon(), owner(), id, "again"); !errors.Is(err, moderation.ErrAnswered) {
		t.Errorf("after the answer: %v", err)
	}
	decide(link.Clean, false)
	if _, err := o.AppealCase(ctx, noon(), owner(), id, "again"); !errors.Is(err, review.ErrNothingToAppeal) {
		t.Errorf("of an allowed one: %v", err)
	}
	f, err := o.ShowCase(ctx, admin(), id)
	if err != nil || f.URL != refusedURL || len(f.History) != 3 || f.History[0].Safety != link.Clean || f.Appeal == nil {
		t.Errorf("%+v, %v", f, err)
	}
	for _, who := range []auth.Principal{owner(), stranger(1)} {
		if _, err := o.ShowCase(ctx, who, id); err == nil {
			t.Errorf("%v reads the case", who)
		}
		if _, err := o.DecideCase(ctx, noon(), who, review.CaseRuling{ID: id, Safety: link.Clean, Reason: "x"}); err == nil {
			t.Errorf("%v decides", who)
		}
	}
}

func TestAnonymousCasesAreOfWhoeverHasTheirID(t *testing.T) {
	o := newOffice(t)
	anonymous := blocked(refusedURL)
	anonymous.Workspace, anonymous.CreatedBy = link.WorkspaceAnonymous, ""
	id := o.refer(t, anonymous)
	if _, err := o.AppealCase(t.Context(), noon(), stranger(1), id, "mine"); err != nil {
		t.Error(err)
	}
	keyed := o.refer(t, blocked(refusedURL))
	if _, err := o.AppealCase(t.Context(), noon(), stranger(1), keyed, "mine"); !errors.Is(err, moderation.ErrNoDestination) {
		t.Errorf("of a workspace: %v", err)
	}
}

// A decision for all workspaces closes the cases of all of them, on the server that decides and on those
// that follow, and an entry of the list of allowed destinations those of its host.
func TestADecisionForEveryoneClosesAllCases(t *testing.T) {
	o, ctx := newOffice(t), t.Context()
	of := func(w link.WorkspaceID, url, host string) link.ID {
		b := blocked(url)
		b.Workspace, b.Host = w, host
		return o.refer(t, b)
	}
	first, second := of("acme", refusedURL, "evil.example"), of("rival", refusedURL, "evil.example")
	below, other := of("rival", "https://a.good.example/", "a.good.example"), of("rival", "https://notgood.example/", "notgood.example")
	ruling := review.CaseRuling{ID: first, Safety: link.Clean, Reason: "harmless", Everyone: true, Reply: true}
	if _, err := o.DecideCase(ctx, noon().Add(time.Minute), admin(), ruling); err != nil {
		t.Fatal(err)
	}
	if f, err := o.ShowCase(ctx, admin(), second); err != nil || f.Case.IsOpen() || f.Decided != link.Clean || !f.Everyone || len(f.History) != 1 {
		t.Errorf("%+v, %v", f, err)
	}
	line := moderation.Entry{
		At: noon().Add(time.Minute), Entity: moderation.Entity{Kind: moderation.KindAllowedDestination, Name: "good.example"}, Action: moderation.ActionList, Safety: link.Clean, Actor: "mod",
	}
	if _, err := o.journal.Append(ctx, line); err != nil {
		t.Fatal(err)
	}
	if err := o.Turn(ctx, noon().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if f, err := o.ShowCase(ctx, admin(), below); err != nil || f.Case.IsOpen() || f.Case.DecidedBy != "mod" || f.Decided != link.Clean {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err := o.ShowCase(ctx, admin(), other); err != nil || !f.Case.IsOpen() {
		t.Errorf("%+v, %v", f, err)
	}
}

// A moderator erases a refused create at once: the journal says so, and has nothing of the URL.
func TestARefusedCreateIsErased(t *testing.T) {
	o, ctx := newOffice(t), t.Context()
	id := o.refer(t, blocked(refusedURL))
	if err := o.EraseCase(ctx, noon(), owner(), id, "private"); err == nil {
		t.Error("an owner erases it")
	}
	if err := o.EraseCase(ctx, noon(), admin(), id, "private"); err != nil {
		t.Fatal(err)
	}
	if _, err := o.ShowCase(ctx, admin(), id); !errors.Is(err, moderation.ErrNoDestination) {
		t.Errorf("%v", err)
	}
	if all := allCases(t, o.cases); len(all) != 0 {
		t.Errorf("%+v", all)
	}
	entries, err := o.journal.Read(ctx, 0, 10)
	if err != nil || len(entries) != 1 || entries[0].Action != moderation.ActionErase || entries[0].Actor != admin().KeyID || entries[0].Reason.Body != "case: private" {
		t.Errorf("%+v, %v", entries, err)
	}
	if _, err := moderation.Verify(ctx, o.journal, nil); err != nil {
		t.Error(err)
	}
	if err := o.Turn(ctx, noon()); err != nil {
		t.Error(err)
	}
	if again := o.refer(t, blocked(refusedURL)); again.IsZero() || again == id {
		t.Errorf("refused again: %v", again)
	}
}

// Callers without a key share a bound in their network, which takes no case away from a workspace there.
func TestANeighborTakesNoCaseAway(t *testing.T) {
	o := newOffice(t)
	cases := func(w link.WorkspaceID) (opened int) {
		b := blocked("")
		for n := range 25 {
			if b.Workspace, b.URL = w, fmt.Sprintf("%s?%s=%d", refusedURL, w, n); !o.refer(t, b).IsZero() {
				opened++
			}
		}
		return opened
	}
	for _, c := range []struct {
		workspace link.WorkspaceID
		want      int
	}{{"first", 25}, {link.WorkspaceAnonymous, 20}, {"second", 25}} {
		if got := cases(c.workspace); got != c.want {
			t.Errorf("%d cases of %q, want %d", got, c.workspace, c.want)
		}
	}
}

// A create is refused with or without a case: what hinders the case hinders nothing else.
func TestARefusalDoesNotWaitForItsCase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &downDestinations{}
		o := newOffice(t, func(c *review.Config) { c.Destinations = down })
		if id := o.refer(t, blocked(refusedURL)); !id.IsZero() {
			t.Errorf("a case without a store: %v", id)
		}
		began := time.Now()
		if id := o.refer(t, blocked(refusedURL)); !id.IsZero() || time.Since(began) > 10*time.Second || !down.bounded {
			t.Errorf("%v after %s", id, time.Since(began))
		}
	})
}

// downDestinations is a store that fails, and then one that hangs.
type downDestinations struct {
	moderation.Destinations

	calls   int
	bounded bool
}

func (d *downDestinations) Refuse(ctx context.Context, _ []moderation.Refusal, _ moderation.Bounds) ([]link.ID, error) {
	if d.calls++; d.calls == 1 {
		return nil, link.ErrUnavailable
	}
	_, d.bounded = ctx.Deadline()
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestRefusedURLsAreErasedAfterAMonth(t *testing.T) {
	o, ctx := newOffice(t), t.Context()
	decided, open := o.refer(t, blocked(refusedURL)), o.refer(t, blocked(refusedURL+"/2"))
	if _, err := o.DecideCase(ctx, noon().Add(time.Hour), admin(), review.CaseRuling{ID: decided, Safety: link.Blocked, Reason: "harmful"}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after    time.Duration
		url      string
		openGone bool
	}{
		{moderation.DestinationRetention, refusedURL, false},
		{moderation.DestinationRetention + time.Minute, refusedURL, true},
		{moderation.DestinationRetention + 2*time.Hour, "", true},
	} {
		if err := o.Expire(ctx, noon().Add(step.after)); err != nil {
			t.Fatal(err)
		}
		if f, err := o.ShowCase(ctx, admin(), decided); err != nil || f.URL != step.url || f.Decided != link.Blocked {
			t.Errorf("after %s: %+v, %v", step.after, f, err)
		}
		if _, err := o.ShowCase(ctx, admin(), open); errors.Is(err, moderation.ErrNoDestination) != step.openGone {
			t.Errorf("after %s: %v", step.after, err)
		}
	}
	if v, ok := o.moderator.Verdict("acme", refusedURL); !ok || v.Safety != link.Blocked || v.Link != decided {
		t.Errorf("the decision was forgotten: %+v", v)
	}
}
