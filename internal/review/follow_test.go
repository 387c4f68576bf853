package review_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderator"
	"curt/internal/review"
)

func TestWhatThePolicyDecidesIsInTheQueue(t *testing.T) {
	o := newOffice(t)
	for code, s := range map[string]link.Safety{"clean": link.Clean, "warned": link.Warn, "held": link.Quarantined} {
		l := o.put(t, code, func(l *link.Link) { l.Safety = s })
		o.suspect(t, &l, s, 65)
	}
	o.turn(t, noon())
	got := o.queue(t)
	slices.Sort(got)
	if !slices.Equal(got, []string{"held", "warned"}) {
		t.Errorf("the queue is %v", got)
	}
	o.turn(t, noon())
	if again := o.queue(t); len(again) != 2 {
		t.Errorf("after another turn %v", again)
	}
	f, err := o.Show(t.Context(), admin(), key("held"))
	if err != nil || f.Case.Score != 65 || len(f.History) != 1 || f.History[0].Safety != link.Quarantined {
		t.Errorf("%+v, %v", f, err)
	}
	if open, overdue := o.value(t, "curt_reviews_open"), o.value(t, "curt_reviews_overdue"); open != 2 || overdue != 0 {
		t.Errorf("%v open, %v overdue", open, overdue)
	}
	o.turn(t, noon().Add(review.DefaultDue+time.Millisecond))
	if overdue := o.value(t, "curt_reviews_overdue"); overdue != 2 {
		t.Errorf("%v overdue", overdue)
	}
}

// The journal is written before the link. A case waits for its link, and one whose link
// never comes goes; what another link has under the key is none of its business.
func TestACaseWaitsForItsLink(t *testing.T) {
	o := newOffice(t)
	taken := o.put(t, "taken")
	other := taken
	other.ID[15] ^= 1
	late := taken
	late.Key.Code, late.ID[15] = "late", taken.ID[15]^2
	o.suspect(t, &other, link.Quarantined, 70)
	o.suspect(t, &late, link.Quarantined, 70)
	o.turn(t, noon())
	if got := o.queue(t); len(got) != 0 {
		t.Errorf("before there is a link: %v", got)
	}
	if _, err := o.links.Create(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	o.turn(t, noon().Add(time.Second))
	if got := o.queue(t); !slices.Equal(got, []string{"late"}) {
		t.Errorf("once it is there: %v", got)
	}
	o.turn(t, noon().Add(time.Hour))
	if pending, err := o.cases.Pending(t.Context(), link.ID{}, 10); err != nil || len(pending) != 0 {
		t.Errorf("after an hour %v still wait, %v", pending, err)
	}
	if _, err := o.Show(t.Context(), admin(), key("taken")); !errors.Is(err, moderation.ErrNoCase) {
		t.Errorf("the link that has the key: %v", err)
	}
}

// A link may wait in a queue for days, among many that never come: its case waits as long, and is there soon after the link.
func TestACaseWaitsAsLongAsAQueue(t *testing.T) {
	const never = 450
	o := newOffice(t, func(c *review.Config) { c.WrittenWithin = 8 * 24 * time.Hour })
	template := o.put(t, "template")
	suspect := func(n int) link.Link {
		l := template
		l.Key.Code, l.ID[14], l.ID[15] = link.Code(fmt.Sprintf("code%d", n)), template.ID[14]^byte(1+n>>8), template.ID[15]^byte(n)
		o.suspect(t, &l, link.Quarantined, 70)
		return l
	}
	for n := range never {
		suspect(n)
	}
	late := suspect(never)
	for range 5 {
		o.turn(t, noon().Add(5*24*time.Hour))
	}
	if _, err := o.links.Create(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		o.turn(t, noon().Add(5*24*time.Hour))
	}
	if got := o.queue(t); !slices.Equal(got, []string{string(late.Key.Code)}) {
		t.Errorf("once the link is there: %v", got)
	}
	for range 4 {
		o.turn(t, noon().Add(9*24*time.Hour))
	}
	if pending, err := o.cases.Pending(t.Context(), link.ID{}, 1000); err != nil || len(pending) != 0 {
		t.Errorf("after nine days %d still wait, %v", len(pending), err)
	}
}

// A change of the destination is judged before it is written: the case is shown with the
// destination that it is about.
func TestACaseNamesTheDestinationThatWasJudged(t *testing.T) {
	o := newOffice(t)
	l := o.put(t, "abc", func(l *link.Link) {
		l.Destination, l.Created, l.Updated = "https://good.example/", noon().Add(-time.Hour), noon().Add(-time.Hour)
	})
	o.suspect(t, &l, link.Quarantined, 70)
	o.turn(t, noon())
	if got := o.queue(t); len(got) != 0 {
		t.Errorf("before the change: %v", got)
	}
	l.Destination, l.Safety, l.Updated = "https://evil.example/", link.Quarantined, noon()
	if _, err := o.links.Replace(t.Context(), l, link.Edit{}); err != nil {
		t.Fatal(err)
	}
	o.turn(t, noon().Add(time.Second))
	if f, err := o.Show(t.Context(), admin(), key("abc")); err != nil || f.Case.Host != "evil.example" {
		t.Errorf("%+v, %v", f.Case, err)
	}
}

// Decisions that were made elsewhere close cases as well.
func TestDecisionsMadeElsewhereCloseCases(t *testing.T) {
	o := newOffice(t)
	o.put(t, "abc")
	if err := o.Report(t.Context(), noon(), stranger(1), complaint("abc")); err != nil {
		t.Fatal(err)
	}
	orders := []moderator.Order{{Key: key("abc"), Safety: link.Blocked, Reason: "harmful"}}
	if _, err := o.moderator.Decide(t.Context(), noon().Add(time.Minute), "other", orders); err != nil {
		t.Fatal(err)
	}
	o.turn(t, noon().Add(time.Minute))
	f, err := o.Show(t.Context(), admin(), key("abc"))
	if err != nil || f.Case.IsOpen() || f.Case.DecidedBy != "other" || f.Case.Decided != link.Blocked {
		t.Errorf("%+v, %v", f.Case, err)
	}
	if n := o.value(t, "curt_review_decision_seconds"); n != 1 {
		t.Errorf("%v decisions were timed", n)
	}
}

func TestTextsAreForgottenInTime(t *testing.T) {
	o := newOffice(t, func(c *review.Config) { c.Retention = 24 * time.Hour })
	o.put(t, "abc")
	if err := o.Report(t.Context(), noon(), stranger(1), complaint("abc")); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Decide(t.Context(), noon(), admin(), []review.Ruling{{Key: key("abc"), Safety: link.Blocked, Reason: "harmful"}}); err != nil {
		t.Fatal(err)
	}
	o.turn(t, noon().Add(24*time.Hour))
	before, err := o.Show(t.Context(), admin(), key("abc"))
	if err != nil || before.Notes[0].Erased {
		t.Errorf("after a day: %+v, %v", before.Notes, err)
	}
	o.turn(t, noon().Add(24*time.Hour+time.Millisecond))
	after, err := o.Show(t.Context(), admin(), key("abc"))
	if err != nil || !after.Notes[0].Erased || after.Notes[0].Text != "" || after.Notes[0].Contact != "" || len(after.History) != 1 || after.History[0].Reason.Body != "harmful" {
		t.Errorf("after more: %+v, %v", after, err)
	}
}

func TestRunFollowsEachSecondUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, func(c *review.Config) { c.Now = time.Now })
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- o.Run(ctx) }()
		l := o.put(t, "abc")
		o.suspect(t, &l, link.Warn, 30)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := o.queue(t); len(got) != 1 {
			t.Errorf("the queue is %v", got)
		}
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// An owner who deletes a link leaves nothing to decide: its case is closed, and what the
// journal still says of it opens none.
func TestTheCaseOfADeletedLinkIsClosed(t *testing.T) {
	o := newOffice(t)
	l := o.put(t, "gone", func(l *link.Link) { l.Safety = link.Quarantined })
	kept := o.put(t, "kept", func(l *link.Link) { l.Safety, l.Expires = link.Quarantined, noon() })
	o.suspect(t, &l, link.Quarantined, 70)
	o.suspect(t, &kept, link.Quarantined, 70)
	o.turn(t, noon())
	if got := o.queue(t); len(got) != 2 {
		t.Fatalf("the queue is %v", got)
	}
	if _, err := o.links.Replace(t.Context(), l.Tombstone(noon()), link.Edit{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		o.turn(t, noon().Add(time.Minute))
		if got := o.queue(t); !slices.Equal(got, []string{"kept"}) {
			t.Errorf("once one was deleted: %v", got)
		}
		o.suspect(t, &l, link.Quarantined, 70)
	}
	o.turn(t, noon().Add(review.DefaultDue+time.Hour))
	if open, overdue := o.value(t, "curt_reviews_open"), o.value(t, "curt_reviews_overdue"); open != 1 || overdue != 1 {
		t.Errorf("%v open, %v overdue; want the one of the link that is left", open, overdue)
	}
	if _, err := o.links.Replace(t.Context(), kept.WithoutContent(noon()), link.Edit{}); err != nil {
		t.Fatal(err)
	}
	o.turn(t, noon().Add(2*review.DefaultDue))
	for id, by := range map[link.ID]string{l.ID: moderation.ActorOwner, kept.ID: moderation.ActorRetention} {
		c, err := o.cases.Case(t.Context(), id)
		if err != nil || c.IsOpen() || c.DecidedBy != by {
			t.Errorf("want closed by %s: %+v, %v", by, c, err)
		}
	}
}

func TestACaseFollowsItsLinkToAnotherWorkspace(t *testing.T) {
	o := newOffice(t)
	for _, tell := range []func(link.Link){
		func(l link.Link) { o.Changed(key("other"), key("nobodys"), l.Key) },
		func(link.Link) { o.Changed() }, // nobody knows which changed
	} {
		code := "c" + string(rune('a'+len(o.queue(t))))
		l := o.put(t, code)
		if err := o.Report(t.Context(), noon(), stranger(1), complaint(code)); err != nil {
			t.Fatal(err)
		}
		l.Workspace = "moved"
		if _, err := o.links.Replace(t.Context(), l, link.Edit{}); err != nil {
			t.Fatal(err)
		}
		o.turn(t, noon())
		if f, err := o.Show(t.Context(), admin(), l.Key); err != nil || f.Case.Workspace != "acme" {
			t.Errorf("before anybody said so: %+v, %v", f.Case, err)
		}
		tell(l)
		o.turn(t, noon())
		if f, err := o.Show(t.Context(), admin(), l.Key); err != nil || f.Case.Workspace != "moved" {
			t.Errorf("%+v, %v", f.Case, err)
		}
	}
}
