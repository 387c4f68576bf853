// Package moderationtest proves what keeps the decisions of package moderation.
package moderationtest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
	"curt/internal/moderation"
)

// Queue is what RunCases proves: one store with both contracts.
type Queue struct {
	moderation.Cases
	moderation.Appeals
	moderation.Destinations
}

// RunCases proves a moderation.Cases with its moderation.Appeals. open returns an empty
// one; again another handle on the same data, nil = there is none.
func RunCases(t *testing.T, open func(t *testing.T) Queue, again func(t *testing.T, q Queue) Queue) {
	for name, prove := range map[string]func(*testing.T, Queue){
		"a link has one open case":               oneCase,
		"the journal counts once":                followsOnce,
		"decisions close what they know":         closes,
		"a decision knows what was before it":    overtakes,
		"a case waits for its link":              waits,
		"reports are counted and bounded":        counts,
		"networks are told apart for a day":      networks,
		"an appeal is answered once":             answersOnce,
		"an answer leaves later appeals alone":   laterAppeals,
		"texts are erased":                       erasesTexts,
		"walks are complete in every order":      walks,
		"filters choose":                         filters,
		"the open and the overdue are counted":   backlog,
		"one of many reporters at once opens it": races,
		"a cancelled caller gets an error":       givesUp,
		"a destination has one case":             oneDestination,
		"refused destinations are bounded":       boundedDestinations,
		"a destination is decided":               decidedDestination,
		"a destination is decided for everyone":  everyonesDestination,
		"a destination is erased":                erasedDestination,
		"destinations expire":                    expiredDestinations,
	} {
		t.Run(name, func(t *testing.T) { prove(t, open(t)) })
	}
	if again != nil {
		t.Run("another handle sees it all at once", func(t *testing.T) {
			q := open(t)
			other := again(t, q)
			report(t, q, 1, 0)
			if c := must(t)(other.Case(t.Context(), id(1))); c.Reports.Count != 1 {
				t.Errorf("the other handle has %+v", c)
			}
		})
	}
}

// noon is when the tests begin.
func noon() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }

// id is the n-th of ids that sort by n.
func id(n int) link.ID {
	return link.ID{5: byte(n >> 8), 6: 0x70, 7: byte(n), 8: 0x80, 15: 1}
}

// ref names the n-th link; caseID is the id of a case of it.
func ref(n int) moderation.Ref {
	return moderation.Ref{Key: link.Key{Code: link.Code("code" + string(rune('a'+n%26)))}, ID: id(n)}
}

func caseID(n int) link.ID { return id(1000 + n) }

func facts() moderation.Facts { return moderation.Facts{Workspace: "acme", Host: "evil.example"} }

// opening opens the n-th case, which begins n seconds after the noon.
func opening(n int, source moderation.Sources, score int) moderation.Opening {
	at := noon().Add(time.Duration(n) * time.Second)
	return moderation.Opening{
		ID: caseID(n), Link: ref(n), Facts: facts(), Source: source, Score: score, At: at, Due: at.Add(5 * time.Minute),
	}
}

func closing(n int, sequence uint64) moderation.Closing {
	return moderation.Closing{Link: ref(n), Sequence: sequence, At: noon().Add(time.Hour), By: "mod", Safety: link.Blocked}
}

// must fails the test on an error.
func must(t *testing.T) func(c moderation.Case, err error) moderation.Case {
	return func(c moderation.Case, err error) moderation.Case {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// report reports the n-th link, after seconds more.
func report(t *testing.T, q Queue, n, after int) (moderation.Case, int) {
	t.Helper()
	r := moderation.Report{Opening: opening(n, moderation.FromReport, 0), Text: "text", Contact: "me@example.com", Network: uint64(after + 1)}
	r.ID = caseID(n + 200*(after+1)) // each reporter brings an id of its own
	r.At = r.At.Add(time.Duration(after) * time.Second)
	c, networks, err := q.Report(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return c, networks
}

// follow takes one step.
func follow(t *testing.T, q Queue, after uint64, s moderation.Step) []moderation.Case {
	t.Helper()
	closed, err := q.Follow(t.Context(), after, after+1, []moderation.Step{s})
	if err != nil {
		t.Fatal(err)
	}
	return closed
}

func decided(n int, score int) moderation.Step {
	o := opening(n, moderation.FromPolicy, score)
	return moderation.Step{Open: &o}
}

func oneCase(t *testing.T, q Queue) {
	if _, err := q.Case(t.Context(), id(1)); !errors.Is(err, moderation.ErrNoCase) {
		t.Errorf("before: %v", err)
	}
	follow(t, q, 0, decided(1, 70))
	c, _ := report(t, q, 1, 10)
	follow(t, q, 1, decided(1, 65))
	want := opening(1, moderation.FromPolicy, 70)
	at := want.At.Add(10 * time.Second)
	tally := moderation.Tally{Count: 1, First: at, Last: at}
	tally.By[moderation.Phishing] = 1
	wanted := moderation.Case{
		ID: want.ID, Link: want.Link, Facts: want.Facts, Sources: moderation.FromPolicy | moderation.FromReport, Score: 70,
		Opened: want.At, Due: want.Due, Reports: tally,
	}
	if diff := cmp.Diff(wanted, c); diff != "" {
		t.Errorf("the report returned (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wanted, must(t)(q.Case(t.Context(), id(1)))); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	// Another link may have been about to have the key.
	other := opening(2, moderation.FromPolicy, 90)
	other.Link.Key = ref(1).Key
	follow(t, q, 2, moderation.Step{Open: &other})
	if c := must(t)(q.Case(t.Context(), id(1))); c.Score != 70 {
		t.Errorf("the case of another link with the key joined: %+v", c)
	}
}

func followsOnce(t *testing.T, q Queue) {
	ctx := t.Context()
	if at, err := q.Position(ctx); err != nil || at != 0 {
		t.Errorf("at first %d, %v", at, err)
	}
	first, second := decided(1, 70), decided(2, 80)
	if _, err := q.Follow(ctx, 0, 5, []moderation.Step{first, second}); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Follow(ctx, 0, 5, []moderation.Step{decided(3, 90)}); !errors.Is(err, link.ErrConflict) {
		t.Errorf("again from the beginning: %v", err)
	}
	if _, err := q.Case(ctx, id(3)); !errors.Is(err, moderation.ErrNoCase) {
		t.Errorf("a refused step happened: %v", err)
	}
	if _, err := q.Follow(ctx, 5, 9, nil); err != nil {
		t.Errorf("entries that are no steps: %v", err)
	}
	if at, err := q.Position(ctx); err != nil || at != 9 {
		t.Errorf("at last %d, %v", at, err)
	}
}

func closes(t *testing.T, q Queue) {
	ctx := t.Context()
	follow(t, q, 0, decided(1, 70))
	want := closing(1, 2)
	closed := must(t)(q.Close(ctx, want))
	if closed.Closed != want.At || closed.DecidedBy != "mod" || closed.Decided != link.Blocked || closed.Sequence != 2 {
		t.Errorf("closed %+v", closed)
	}
	if got := must(t)(q.Case(ctx, id(1))); !cmp.Equal(got, closed) {
		t.Errorf("stored %+v", got)
	}
	if _, err := q.Close(ctx, want); !errors.Is(err, moderation.ErrNoCase) {
		t.Errorf("closed twice: %v", err)
	}
	if again := follow(t, q, 1, moderation.Step{Close: &want}); len(again) != 0 {
		t.Errorf("Follow closed it again: %+v", again)
	}
	// Later reports open another case, which the decision before does not close.
	next, _ := report(t, q, 1, 3600)
	if next.ID == closed.ID || next.Reports.Count != 1 || next.Sources != moderation.FromReport {
		t.Errorf("the next case is %+v", next)
	}
	early := closing(1, 3)
	early.At = next.Opened.Add(-time.Millisecond)
	if got := follow(t, q, 2, moderation.Step{Close: &early}); len(got) != 0 {
		t.Errorf("a decision from before closed %+v", got)
	}
	now := closing(1, 4)
	now.At = next.Opened
	if got := follow(t, q, 3, moderation.Step{Close: &now}); len(got) != 1 || got[0].ID != next.ID {
		t.Errorf("a decision from then closed %+v", got)
	}
}

// A decision may be in the queue before the entries that it was made behind: those join
// the case that it closed, and open none.
func overtakes(t *testing.T, q Queue) {
	ctx := t.Context()
	step := func(score int, sequence uint64) moderation.Step {
		s := decided(1, score)
		s.Open.Sequence, s.Open.ID = sequence, caseID(100+int(sequence))
		return s
	}
	follow(t, q, 0, step(70, 1))
	for sequence := uint64(3); sequence <= 5; sequence += 2 { // 3 and 5 are decisions
		c := closing(1, sequence)
		c.At = c.At.Add(time.Duration(sequence) * time.Minute)
		must(t)(q.Close(ctx, c))
		if sequence == 3 {
			report(t, q, 1, 3600)
		}
	}
	follow(t, q, 1, step(80, 2))
	follow(t, q, 2, step(60, 4))
	closed, _, err := q.List(ctx, moderation.CaseFilter{Closed: true}, moderation.CasePage{Limit: 10})
	if err != nil || len(closed) != 2 {
		t.Fatalf("closed are %+v, %v", closed, err)
	}
	for _, c := range closed {
		if want := map[uint64]int{3: 80, 5: 60}[c.Sequence]; c.Score != want {
			t.Errorf("the case that entry %d closed has the score %d, want %d", c.Sequence, c.Score, want)
		}
	}
	if open, overdue, err := q.Count(ctx, noon()); err != nil || open != 0 || overdue != 0 {
		t.Errorf("%d are open, %d overdue, %v", open, overdue, err)
	}
	follow(t, q, 3, step(90, 6)) // behind all decisions
	if c := must(t)(q.Case(ctx, id(1))); !c.IsOpen() || c.Score != 90 {
		t.Errorf("a later entry opened %+v", c)
	}
}

func waits(t *testing.T, q Queue) {
	ctx := t.Context()
	for n := range 3 {
		o := opening(n, moderation.FromPolicy, 70)
		o.Facts = moderation.Facts{}
		follow(t, q, uint64(n), moderation.Step{Open: &o})
	}
	if got, _, err := q.List(ctx, moderation.CaseFilter{}, moderation.CasePage{Limit: 10}); err != nil || len(got) != 0 {
		t.Errorf("listed %v, %v", got, err)
	}
	if open, _, err := q.Count(ctx, noon()); err != nil || open != 0 {
		t.Errorf("counted %d, %v", open, err)
	}
	pending, err := q.Pending(ctx, link.ID{}, 2)
	if err != nil || len(pending) != 2 || pending[0].Link != ref(0) || pending[1].Link != ref(1) {
		t.Fatalf("pending: %+v, %v", pending, err)
	}
	if rest, err := q.Pending(ctx, pending[0].ID, 5); err != nil || len(rest) != 2 || rest[0].Link != ref(1) || rest[1].Link != ref(2) {
		t.Errorf("pending behind the first: %+v, %v", rest, err)
	}
	if _, err := q.Case(ctx, id(0)); !errors.Is(err, moderation.ErrNoCase) {
		t.Errorf("a pending case is shown: %v", err)
	}
	if err := q.Describe(ctx, pending[0].ID, facts()); err != nil {
		t.Fatal(err)
	}
	if c := must(t)(q.Case(ctx, id(0))); c.Facts != facts() {
		t.Errorf("described as %+v", c)
	}
	if err := errors.Join(q.Describe(ctx, pending[1].ID, moderation.Facts{}), q.Describe(ctx, pending[0].ID, moderation.Facts{})); err != nil {
		t.Fatal(err)
	}
	must(t)(q.Case(ctx, id(0))) // what has facts is not dropped
	if err := errors.Join(q.Move(ctx, id(0), "moved"), q.Move(ctx, id(99), "moved")); err != nil {
		t.Fatal(err)
	}
	if c := must(t)(q.Case(ctx, id(0))); c.Workspace != "moved" || c.Host != facts().Host {
		t.Errorf("moved to %+v", c)
	}
	report(t, q, 2, 0) // and who reports a link knows that it is there
	if pending, err := q.Pending(ctx, link.ID{}, 10); err != nil || len(pending) != 0 {
		t.Errorf("still pending: %+v, %v", pending, err)
	}
}

func backlog(t *testing.T, q Queue) {
	for n := range 5 {
		report(t, q, n, 0)
	}
	must(t)(q.Close(t.Context(), closing(0, 1)))
	now := opening(3, 0, 0).Due
	if open, overdue, err := q.Count(t.Context(), now); err != nil || open != 4 || overdue != 2 {
		t.Errorf("%d open, %d overdue, %v; want 4 and 2", open, overdue, err)
	}
}

func races(t *testing.T, q Queue) {
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			r := moderation.Report{Opening: opening(1, moderation.FromReport, 0), Category: moderation.Spam, Network: uint64(n + 1)}
			r.ID = caseID(1 + 200*n)
			if _, _, err := q.Report(t.Context(), r); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if c := must(t)(q.Case(t.Context(), id(1))); c.Reports.Count != 16 || c.Reports.By[moderation.Spam] != 16 {
		t.Errorf("%+v", c)
	}
	list, _, err := q.List(t.Context(), moderation.CaseFilter{}, moderation.CasePage{Limit: 10})
	if err != nil || len(list) != 1 {
		t.Errorf("%d cases, %v", len(list), err)
	}
}

func givesUp(t *testing.T, q Queue) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs []error
	note := func(_ any, err error) { errs = append(errs, err) }
	note(q.Position(ctx))
	note(q.Follow(ctx, 0, 1, nil))
	note(q.Close(ctx, closing(1, 1)))
	_, _, err := q.Report(ctx, moderation.Report{Opening: opening(1, moderation.FromReport, 0)})
	errs = append(errs, err, q.Describe(ctx, caseID(1), facts()))
	errs = append(errs, q.Move(ctx, id(1), "moved"))
	note(q.Pending(ctx, link.ID{}, 1))
	note(q.Case(ctx, id(1)))
	note(q.Notes(ctx, caseID(1)))
	_, _, err = q.List(ctx, moderation.CaseFilter{}, moderation.CasePage{Limit: 1})
	errs = append(errs, err)
	_, _, err = q.Count(ctx, noon())
	errs = append(errs, err)
	note(q.Forget(ctx, noon(), 1))
	note(q.Erase(ctx, id(1)))
	note(q.Open(ctx, appeal(1), opening(1, moderation.FromAppeal, 0)))
	note(q.Of(ctx, id(1)))
	note(q.By(ctx, moderation.Hash{}))
	note(q.Refuse(ctx, []moderation.Refusal{refusal(1, "acme")}, roomy()))
	note(q.Destination(ctx, caseID(1)))
	note(q.Expire(ctx, noon(), 1))
	for i, err := range errs {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}
