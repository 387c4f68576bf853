package review_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/review"
)

func TestAnAppealIsAnsweredOnce(t *testing.T) {
	o := newOffice(t)
	for n, code := range []string{"first", "abc"} {
		o.put(t, code)
		if err := o.Report(t.Context(), noon().Add(time.Duration(n)*time.Second), stranger(1), complaint(code)); err != nil {
			t.Fatal(err)
		}
	}
	decide := func(s link.Safety, after time.Duration) {
		t.Helper()
		done, err := o.Decide(t.Context(), noon().Add(after), admin(), []review.Ruling{{Key: key("abc"), Safety: s, Reason: "for the journal only"}})
		if err != nil || done[0].Err != nil {
			t.Fatal(err, done)
		}
	}
	decide(link.Blocked, time.Minute)
	token, err := o.Appeal(t.Context(), noon().Add(2*time.Minute), owner(), key("abc"), "it is my bank")
	if err != nil {
		t.Fatal(err)
	}
	if got := o.queue(t); !slices.Equal(got, []string{"abc", "first"}) {
		t.Errorf("the queue is %v", got)
	}
	if _, err := o.Appeal(t.Context(), noon().Add(2*time.Minute), owner(), key("abc"), "again"); !errors.Is(err, moderation.ErrAppealed) {
		t.Errorf("a second appeal: %v", err)
	}
	ruling := review.Ruling{Key: key("abc"), Safety: link.Clean, Reason: "You are right."}
	done, err := o.Answer(t.Context(), noon().Add(3*time.Minute), admin(), ruling)
	if err != nil || done.Closed == nil || o.safety(t, "abc") != link.Clean || done.Entry.Action != moderation.ActionAnswer {
		t.Fatalf("%+v, %v", done, err)
	}
	if _, err := o.Answer(t.Context(), noon().Add(3*time.Minute), admin(), ruling); !errors.Is(err, moderation.ErrAnswered) {
		t.Errorf("a second answer: %v", err)
	}
	a, err := o.AppealBy(t.Context(), token)
	if err != nil || a.IsOpen() || a.Answer != "You are right." || a.Safety != link.Clean {
		t.Errorf("%+v, %v", a, err)
	}
	// Another appeal waits for another decision, whose words are for the journal.
	decide(link.Warn, 4*time.Minute)
	token, err = o.Appeal(t.Context(), noon().Add(5*time.Minute), owner(), key("abc"), "and now?")
	if err != nil {
		t.Fatal(err)
	}
	decide(link.Quarantined, 6*time.Minute)
	if a, err = o.AppealBy(t.Context(), token); err != nil || a.IsOpen() || a.Answer != "" || a.Safety != link.Quarantined {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := o.Appeal(t.Context(), noon().Add(7*time.Minute), owner(), key("abc"), "again"); !errors.Is(err, moderation.ErrAnswered) {
		t.Errorf("against the same decision: %v", err)
	}
	o.turn(t, noon().Add(8*time.Minute))
	if got := o.queue(t); !slices.Equal(got, []string{"first"}) {
		t.Errorf("at last %v", got)
	}
}

func TestABanStandsAboveTheAnswerAndSaysSo(t *testing.T) {
	o := newOffice(t)
	o.put(t, "abc")
	if _, err := o.Decide(t.Context(), noon(), admin(), []review.Ruling{{Key: key("abc"), Safety: link.Blocked, Reason: "x"}}); err != nil {
		t.Fatal(err)
	}
	ban, err := o.moderator.Ban(t.Context(), noon(), "mod", moderation.Entity{Kind: moderation.KindDomain, Name: "evil.example"}, link.Quarantined, "x")
	if err != nil {
		t.Fatal(err)
	}
	token, err := o.Appeal(t.Context(), noon(), owner(), key("abc"), "mine")
	if err != nil {
		t.Fatal(err)
	}
	done, err := o.Answer(t.Context(), noon(), admin(), review.Ruling{Key: key("abc"), Safety: link.Clean, Reason: "You are right."})
	if err != nil || done.Link.Safety != link.Quarantined || done.Ban.Sequence != ban.Entry.Sequence {
		t.Errorf("the moderator is told %+v, %v", done, err)
	}
	seen, err := o.AppealBy(t.Context(), token)
	if err != nil || seen.Safety != link.Clean || seen.Now == nil || seen.Now.Safety != link.Quarantined || !seen.Banned {
		t.Errorf("the owner is told %+v, %v", seen, err)
	}
	if _, err := o.moderator.Lift(t.Context(), noon(), "mod", ban.Entry.Sequence, "x"); err != nil {
		t.Fatal(err)
	}
	if seen, err = o.AppealOf(t.Context(), owner(), key("abc")); err != nil || seen.Banned {
		t.Errorf("without the ban %+v, %v", seen, err)
	}
}

func TestWhoMayAppeal(t *testing.T) {
	o := newOffice(t)
	blocked := func(l *link.Link) { l.Safety = link.Blocked }
	o.put(t, "theirs", blocked)
	o.put(t, "clean")
	o.put(t, "nobodys", blocked, func(l *link.Link) { l.Workspace = link.WorkspaceAnonymous })
	gone := o.put(t, "gone")
	if _, err := o.links.Replace(t.Context(), gone.Tombstone(noon()), link.Edit{}); err != nil {
		t.Fatal(err)
	}
	rival, reader := owner(), owner()
	rival.Workspace, reader.Scopes = "rival", []auth.Scope{auth.LinksRead}
	for _, c := range []struct {
		who  auth.Principal
		code string
		want error
	}{
		{stranger(1), "nobody", link.ErrNotFound},
		{stranger(1), "theirs", link.ErrNotFound},
		{stranger(1), "clean", link.ErrNotFound},
		{stranger(1), "gone", link.ErrNotFound},
		{rival, "theirs", link.ErrNotFound},
		{reader, "theirs", auth.ErrForbidden},
		{owner(), "clean", review.ErrNothingToAppeal},
		{owner(), "theirs", nil},
		{stranger(1), "nobodys", nil},
		{rival, "nobodys", moderation.ErrAppealed},
	} {
		if _, err := o.Appeal(t.Context(), noon(), c.who, key(c.code), "mine"); !errors.Is(err, c.want) {
			t.Errorf("%s for %s: %v, want %v", c.who.KeyID, c.code, err, c.want)
		}
	}
	for _, reason := range []string{"", " \n", strings.Repeat("a", 1001), "\x00"} {
		_, err := o.Appeal(t.Context(), noon(), owner(), key("theirs"), reason)
		if wrong, ok := errors.AsType[*moderation.InvalidError](err); !ok || wrong.Field != "reason" {
			t.Errorf("%.10q: %v", reason, err)
		}
	}
	for _, token := range []string{"", "x", strings.Repeat("A", 22), strings.Repeat("A", 23), strings.Repeat("\n", 22)} {
		if _, err := o.AppealBy(t.Context(), token); !errors.Is(err, moderation.ErrNoAppeal) {
			t.Errorf("%q: %v", token, err)
		}
	}
	if a, err := o.AppealOf(t.Context(), owner(), key("theirs")); err != nil || a.Reason != "mine" || a.By != "own" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := o.AppealOf(t.Context(), rival, key("theirs")); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("another's: %v", err)
	}
}

func TestDecisionsAreTakenOneByOne(t *testing.T) {
	o := newOffice(t)
	o.put(t, "abc")
	o.put(t, "def")
	if err := o.Report(t.Context(), noon(), stranger(1), complaint("abc")); err != nil {
		t.Fatal(err)
	}
	rulings := []review.Ruling{
		{Key: key("abc"), Safety: link.Blocked, Reason: "harmful"},
		{Key: key("nobody"), Safety: link.Blocked, Reason: "harmful"},
		{Key: key("def"), Safety: link.Blocked},
		{Key: key("def"), Safety: 9, Reason: "x"},
		{Key: key("def"), Safety: link.Blocked, Reason: "tab\there"},
		{Key: key("def"), Safety: link.Warn, Reason: "was never reported"},
	}
	done, err := o.Decide(t.Context(), noon().Add(time.Minute), admin(), rulings)
	if err != nil {
		t.Fatal(err)
	}
	if done[0].Err != nil || done[0].Closed == nil || done[0].Link.Safety != link.Blocked || done[0].Entry.Sequence == 0 {
		t.Errorf("first: %+v", done[0])
	}
	if !errors.Is(done[1].Err, link.ErrNotFound) {
		t.Errorf("second: %+v", done[1])
	}
	for _, i := range []int{2, 3, 4} {
		if _, ok := errors.AsType[*moderation.InvalidError](done[i].Err); !ok {
			t.Errorf("row %d: %+v", i, done[i])
		}
	}
	if done[5].Err != nil || done[5].Closed != nil || o.safety(t, "def") != link.Warn {
		t.Errorf("last: %+v", done[5])
	}
	for _, n := range []int{0, 101} {
		if _, err := o.Decide(t.Context(), noon(), admin(), make([]review.Ruling, n)); err == nil {
			t.Errorf("%d rulings were taken", n)
		}
	}
	if _, err := o.Answer(t.Context(), noon(), admin(), review.Ruling{Key: key("abc"), Safety: link.Clean, Reason: "x"}); !errors.Is(err, moderation.ErrNoAppeal) {
		t.Errorf("an answer to nobody: %v", err)
	}
}

func TestNobodyPassesAChallengeThatFails(t *testing.T) {
	if err := (review.NoChallenge{}).Verify(context.Background(), nil); err != nil {
		t.Errorf("without one: %v", err)
	}
}
