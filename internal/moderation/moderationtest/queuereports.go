package moderationtest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/moderation"
)

func counts(t *testing.T, q Queue) {
	for n := range moderation.MaxNotes + 5 {
		r := moderation.Report{
			Opening: opening(1, moderation.FromReport, 0), Category: moderation.Categories()[n%5],
			Text: strings.Repeat("\u00e9", n), Contact: strings.Repeat("c", n),
		}
		r.At = r.At.Add(time.Duration(n) * time.Second)
		if _, _, err := q.Report(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	c := must(t)(q.Case(t.Context(), id(1)))
	if c.Reports.Count != 25 || c.Reports.By != [5]int{5, 5, 5, 5, 5} || c.Reports.Last.Sub(c.Reports.First) != 24*time.Second {
		t.Errorf("%+v", c.Reports)
	}
	notes, err := q.Notes(t.Context(), c.ID)
	if err != nil || len(notes) != moderation.MaxNotes {
		t.Fatalf("%d texts are kept, %v", len(notes), err)
	}
	for i, n := range notes {
		at := 24 - i
		want := moderation.Note{
			At: noon().Add(time.Duration(at+1) * time.Second), Category: moderation.Categories()[at%5],
			Text: strings.Repeat("\u00e9", at), Contact: strings.Repeat("c", at),
		}
		if n != want {
			t.Errorf("note %d is %+v, want %+v", i, n, want)
		}
	}
	if notes, err := q.Notes(t.Context(), caseID(9)); err != nil || len(notes) != 0 {
		t.Errorf("of no case: %v, %v", notes, err)
	}
}

func networks(t *testing.T, q Queue) {
	send := func(day int, network uint64) int {
		t.Helper()
		r := moderation.Report{Opening: opening(1, moderation.FromReport, 0), Network: network}
		r.At = r.At.Add(time.Duration(day) * 24 * time.Hour)
		_, n, err := q.Report(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i, step := range []struct {
		day     int
		network uint64
		want    int
	}{
		{0, 1, 1},
		{0, 1, 1},
		{0, 2, 2},
		{0, 0, 2},
		{0, 1<<64 - 1, 3},
		{1, 1, 1},
		{1, 3, 2}, // a new day: the digests of the last one say nothing
		{0, 9, 2}, // who comes late from the day before is not counted
	} {
		if got := send(step.day, step.network); got != step.want {
			t.Errorf("step %d: %d networks, want %d", i, got, step.want)
		}
	}
	for n := range moderation.MaxNetworks + 10 {
		send(2, uint64(n+1))
	}
	if got := send(2, 1<<40); got != moderation.MaxNetworks {
		t.Errorf("%d networks, want the bound", got)
	}
}

// appeal is the n-th appeal, of the n-th link, against the first decision.
func appeal(n int) moderation.Appeal {
	return moderation.Appeal{
		ID: caseID(n + 500), Link: ref(n), Token: moderation.Hash{byte(n), 31: 1}, At: noon().Add(time.Minute),
		By: "owner", Reason: "it is mine", Against: 1,
	}
}

func answersOnce(t *testing.T, q Queue) {
	ctx := t.Context()
	if _, err := q.Of(ctx, id(1)); !errors.Is(err, moderation.ErrNoAppeal) {
		t.Errorf("before: %v", err)
	}
	follow(t, q, 0, decided(1, 70))
	a := appeal(1)
	c := must(t)(q.Open(ctx, a, opening(1, moderation.FromAppeal, 0)))
	if c.Sources != moderation.FromPolicy|moderation.FromAppeal || c.ID != caseID(1) {
		t.Errorf("its case is %+v", c)
	}
	second := appeal(1)
	second.ID, second.Token = caseID(600), moderation.Hash{9}
	if _, err := q.Open(ctx, second, opening(1, moderation.FromAppeal, 0)); !errors.Is(err, moderation.ErrAppealed) {
		t.Errorf("a second one: %v", err)
	}
	if got, err := q.By(ctx, a.Token); err != nil || got != a {
		t.Errorf("by its token: %+v, %v", got, err)
	}
	if _, err := q.By(ctx, second.Token); !errors.Is(err, moderation.ErrNoAppeal) {
		t.Errorf("by another token: %v", err)
	}
	answer := closing(1, 2)
	answer.Answer = "it stays"
	must(t)(q.Close(ctx, answer))
	a.Answered, a.AnsweredBy, a.Answer, a.Safety, a.Sequence = answer.At, "mod", "it stays", link.Blocked, 2
	if got, err := q.Of(ctx, id(1)); err != nil || got != a {
		t.Errorf("answered: %+v, %v", got, err)
	}
	// The decision that stands is the answer: only a later one can be appealed against.
	second.Against = 2
	if _, err := q.Open(ctx, second, opening(1, moderation.FromAppeal, 0)); !errors.Is(err, moderation.ErrAnswered) {
		t.Errorf("against the answer: %v", err)
	}
	second.Against, second.At = 3, noon().Add(2*time.Hour)
	o := opening(1, moderation.FromAppeal, 0)
	o.ID, o.At = caseID(601), second.At
	if c := must(t)(q.Open(ctx, second, o)); c.ID != caseID(601) {
		t.Errorf("against a later decision: %+v", c)
	}
	if got, err := q.Of(ctx, id(1)); err != nil || got != second {
		t.Errorf("the newest is %+v, %v", got, err)
	}
}

func laterAppeals(t *testing.T, q Queue) {
	ctx := t.Context()
	follow(t, q, 0, decided(1, 70))
	a := appeal(1)
	a.At = noon().Add(time.Hour + time.Millisecond)
	must(t)(q.Open(ctx, a, opening(1, moderation.FromAppeal, 0)))
	late := closing(1, 2) // decided before the appeal, followed after it
	if closed := follow(t, q, 1, moderation.Step{Close: &late}); len(closed) != 0 {
		t.Errorf("closed %+v", closed)
	}
	if got, err := q.Of(ctx, id(1)); err != nil || !got.IsOpen() {
		t.Errorf("%+v, %v", got, err)
	}
	late.Sequence, late.At = 3, a.At
	if closed := follow(t, q, 2, moderation.Step{Close: &late}); len(closed) != 1 {
		t.Errorf("closed %+v", closed)
	}
	if got, err := q.Of(ctx, id(1)); err != nil || got.IsOpen() || got.Answer != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func erasesTexts(t *testing.T, q Queue) {
	ctx := t.Context()
	for n := range 3 { // 0 and 1 are closed
		report(t, q, n, 0)
		report(t, q, n, 1)
		must(t)(q.Open(ctx, appeal(n), opening(n, moderation.FromAppeal, 0)))
	}
	for n := range 2 {
		c := closing(n, uint64(n)+2)
		c.At, c.Answer = c.At.Add(time.Duration(n)*time.Hour), "no"
		must(t)(q.Close(ctx, c))
	}
	forget := func(before time.Time, n, want int) {
		t.Helper()
		if got, err := q.Forget(ctx, before, n); err != nil || got != want {
			t.Errorf("forgot %d, %v; want %d", got, err, want)
		}
	}
	forget(noon().Add(time.Hour), 100, 0)
	forget(noon().Add(time.Hour+time.Millisecond), 2, 2)
	forget(noon().Add(time.Hour+time.Millisecond), 2, 1)
	forget(noon().Add(time.Hour+time.Millisecond), 2, 0)
	left := func(n int, want bool) {
		t.Helper()
		c := must(t)(q.Case(ctx, id(n)))
		notes, err := q.Notes(ctx, c.ID)
		if err != nil || len(notes) != 2 || c.Reports.Count != 2 {
			t.Fatalf("%+v, %v", notes, err)
		}
		for _, w := range notes {
			if (w.Text == "text") != want || (w.Contact != "") != want || w.Erased == want {
				t.Errorf("of %d: %+v", n, w)
			}
		}
		a, err := q.Of(ctx, id(n))
		if err != nil || (a.Reason != "") != want || a.Erased == want || a.Answer != "" && !want {
			t.Errorf("of %d: %+v, %v", n, a, err)
		}
	}
	left(0, false)
	left(1, true)
	left(2, true)
	if n, err := q.Erase(ctx, id(2)); err != nil || n != 3 {
		t.Errorf("erased %d, %v", n, err)
	}
	left(1, true)
	left(2, false)
	if n, err := q.Erase(ctx, id(2)); err != nil || n != 0 {
		t.Errorf("erased %d again, %v", n, err)
	}
}
