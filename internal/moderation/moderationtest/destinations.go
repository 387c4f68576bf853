package moderationtest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"curt/internal/link"
	"curt/internal/moderation"
)

// destination returns that of an id; nil = none.
func (m *MemoryCases) destination(id link.ID) *moderation.Destination {
	for _, d := range m.destinations {
		if d.ID == id {
			return d
		}
	}
	return nil
}

// Refuse implements moderation.Destinations.
func (m *MemoryCases) Refuse(ctx context.Context, all []moderation.Refusal, b moderation.Bounds) ([]link.ID, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	ids := make([]link.ID, len(all))
	for i, r := range all[:min(len(all), moderation.MaxRefusals)] {
		var known *moderation.Destination
		account, network := 0, 0
		for _, d := range m.destinations {
			if d.Workspace == r.Workspace && d.Digest == r.Digest {
				known = d
			}
			if d.Decided == 0 && d.Workspace == r.Workspace {
				account++
			}
			if d.Decided == 0 && d.Network == r.Network && r.Network != 0 {
				network++
			}
		}
		switch {
		case known != nil:
			known.Refused += r.Refused
			known.Last = r.First
			ids[i] = known.ID
			if known.Decided != 0 && moderation.Allows(known.Decided) && r.First.Sub(known.At) > moderation.AllowedFor {
				known.Decided, known.Everyone, known.URL, known.First, known.Erased = 0, false, r.URL, r.First, false
				m.join(refusalOpening(&r, known.ID))
			}
		case account < b.Account && (r.Network == 0 || network < b.Network):
			d := r.Destination
			d.Last, ids[i] = d.First, d.ID
			m.destinations = append(m.destinations, &d)
			m.join(refusalOpening(&r, d.ID))
		}
	}
	return ids, nil
}

// refusalOpening opens the case of a destination.
func refusalOpening(r *moderation.Refusal, of link.ID) moderation.Opening {
	return moderation.Opening{
		ID: r.ID, Link: moderation.Ref{ID: of}, Facts: moderation.Facts{Workspace: r.Workspace, Host: r.Host},
		Source: moderation.FromBlock, Score: r.Score, At: r.First, Due: r.Due,
	}
}

// Destination implements moderation.Destinations.
func (m *MemoryCases) Destination(ctx context.Context, id link.ID) (moderation.Destination, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return moderation.Destination{}, err
	}
	defer unlock()
	if d := m.destination(id); d != nil {
		return *d, nil
	}
	return moderation.Destination{}, moderation.ErrNoDestination
}

// Expire implements moderation.Destinations.
func (m *MemoryCases) Expire(ctx context.Context, before time.Time, n int) (done int, err error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	slices.SortFunc(m.destinations, func(a, b *moderation.Destination) int { return cmp.Compare(age(a), age(b)) })
	for _, d := range slices.Clone(m.destinations) {
		if done == n || d.Erased || age(d) >= before.UnixMilli() {
			continue
		}
		done++
		m.eraseDestination(d)
	}
	return done, nil
}

func (m *MemoryCases) eraseDestination(d *moderation.Destination) {
	of := func(r moderation.Ref) bool { return r.ID == d.ID }
	if d.Decided == 0 {
		m.destinations = slices.DeleteFunc(m.destinations, func(o *moderation.Destination) bool { return o == d })
		m.cases = slices.DeleteFunc(m.cases, func(c moderation.Case) bool { return of(c.Link) })
		m.appeals = slices.DeleteFunc(m.appeals, func(a moderation.Appeal) bool { return of(a.Link) })
		return
	}
	d.URL, d.CreatedBy, d.Network, d.Evidence, d.Erased = "", "", 0, "", true
	for i := range m.cases {
		if of(m.cases[i].Link) {
			m.cases[i].Host = ""
		}
	}
	for i := range m.appeals {
		if a := &m.appeals[i]; of(a.Link) {
			a.Reason, a.Answer, a.Erased = "", "", true
		}
	}
}

// EraseDestination implements moderation.Destinations.
func (m *MemoryCases) EraseDestination(ctx context.Context, id link.ID) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	d := m.destination(id)
	if d == nil {
		return moderation.ErrNoDestination
	}
	m.eraseDestination(d)
	return nil
}

// age is when a destination was decided about, or first refused.
func age(d *moderation.Destination) int64 { return max(link.Millis(d.First), link.Millis(d.At)) }

func roomy() moderation.Bounds { return moderation.Bounds{Account: 100, Network: 100} }

// refusal is that of the n-th destination, refused n seconds after the noon.
func refusal(n int, w link.WorkspaceID) moderation.Refusal {
	at, url := noon().Add(time.Duration(n)*time.Second), "https://evil.example/"+strconv.Itoa(n)
	return moderation.Refusal{Destination: moderation.Destination{
		ID: caseID(n), Workspace: w, Digest: moderation.DigestOf(url), URL: url, CreatedBy: "key", Network: 1 << 63, Score: 95, Evidence: `[]`,
		Refused: 1, First: at, Last: at,
	}, Host: "evil.example", Due: at.Add(5 * time.Minute)}
}

func refuseAll(t *testing.T, q Queue, b moderation.Bounds, all ...moderation.Refusal) []link.ID {
	t.Helper()
	ids, err := q.Refuse(t.Context(), all, b)
	if err != nil || len(ids) != len(all) {
		t.Fatalf("%v, %v", ids, err)
	}
	return ids
}

func stored(t *testing.T, q Queue, id link.ID) moderation.Destination {
	t.Helper()
	d, err := q.Destination(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func oneDestination(t *testing.T, q Queue) {
	if _, err := q.Destination(t.Context(), caseID(1)); !errors.Is(err, moderation.ErrNoDestination) {
		t.Errorf("before: %v", err)
	}
	first, second := refusal(1, "acme"), refusal(1, "acme")
	second.ID, second.Refused, second.First = caseID(2), 3, first.First.Add(time.Hour)
	for _, r := range []moderation.Refusal{first, second} {
		if ids := refuseAll(t, q, roomy(), r); ids[0] != first.ID {
			t.Errorf("named %v, want %v", ids, first.ID)
		}
	}
	want := first.Destination
	want.Refused, want.Last = 4, second.First
	if diff := gocmp.Diff(want, stored(t, q, first.ID)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c := must(t)(q.Case(t.Context(), first.ID))
	if c.Link != (moderation.Ref{ID: first.ID}) || c.Sources != moderation.FromBlock || c.Score != 95 || c.Host != "evil.example" || c.Due != first.Due {
		t.Errorf("the case is %+v", c)
	}
	other := refusal(1, "rival")
	other.ID = caseID(3)
	if ids := refuseAll(t, q, roomy(), other); ids[0] != other.ID {
		t.Errorf("another workspace got %v", ids)
	}
	if got := walk(t, q, moderation.CaseFilter{Source: moderation.FromBlock}, 1); len(got) != 2 {
		t.Errorf("listed %v", got)
	}
}

func boundedDestinations(t *testing.T, q Queue) {
	one, two := refusal(1, "acme"), refusal(2, "acme")
	again := one
	again.ID = caseID(9)
	ids := refuseAll(t, q, moderation.Bounds{Account: 1, Network: 10}, one, two, again)
	if want := []link.ID{one.ID, {}, one.ID}; !slices.Equal(ids, want) {
		t.Errorf("one account got %v, want %v", ids, want)
	}
	if ids := refuseAll(t, q, moderation.Bounds{Account: 1, Network: 10}, two); !ids[0].IsZero() {
		t.Errorf("beyond the bound: %v", ids)
	}
	if ids := refuseAll(t, q, moderation.Bounds{Account: 10, Network: 1}, refusal(3, "rival")); !ids[0].IsZero() {
		t.Errorf("beyond the bound of a network: %v", ids)
	}
	unknown := refusal(3, "rival")
	unknown.Network = 0
	if ids := refuseAll(t, q, moderation.Bounds{Account: 10, Network: 1}, unknown); ids[0] != unknown.ID {
		t.Errorf("without a network: %v", ids)
	}
	must(t)(q.Close(t.Context(), moderation.Closing{Link: moderation.Ref{ID: one.ID}, Sequence: 1, At: noon().Add(time.Hour), By: "mod", Safety: link.Blocked}))
	if ids := refuseAll(t, q, moderation.Bounds{Account: 1, Network: 10}, two); ids[0] != two.ID {
		t.Errorf("after a decision: %v", ids)
	}
	if ids, err := q.Refuse(t.Context(), nil, roomy()); err != nil || len(ids) != 0 {
		t.Errorf("nothing: %v, %v", ids, err)
	}
	many := make([]moderation.Refusal, moderation.MaxRefusals+1)
	for i := range many {
		many[i] = refusal(1000+i, "many")
	}
	if ids := refuseAll(t, q, moderation.Bounds{Account: 1000, Network: 1000}, many...); ids[moderation.MaxRefusals-1].IsZero() || !ids[moderation.MaxRefusals].IsZero() {
		t.Errorf("%v", ids)
	}
}

func decidedDestination(t *testing.T, q Queue) {
	ctx := t.Context()
	r := refusal(1, "acme")
	refuseAll(t, q, roomy(), r)
	a := appeal(1)
	a.Link = moderation.Ref{ID: r.ID}
	o := opening(1, moderation.FromBlock|moderation.FromAppeal, 0)
	o.Link, o.ID, o.At = a.Link, caseID(7), a.At
	if c := must(t)(q.Open(ctx, a, o)); c.ID != r.ID || c.Sources != moderation.FromBlock|moderation.FromAppeal {
		t.Errorf("appealed: %+v", c)
	}
	allow := moderation.Closing{Link: a.Link, Sequence: 2, At: noon().Add(time.Hour), By: "mod", Safety: link.Clean, Answer: "fine", Everyone: true}
	if got := follow(t, q, 0, moderation.Step{Close: &allow}); len(got) != 1 || got[0].ID != r.ID {
		t.Errorf("closed %+v", got)
	}
	check := func(want moderation.Closing) {
		t.Helper()
		if d := stored(t, q, r.ID); d.Decided != want.Safety || d.Everyone != want.Everyone || d.At != want.At || d.Sequence != want.Sequence {
			t.Errorf("%+v, want %+v", d, want)
		}
	}
	check(allow)
	if got, err := q.Of(ctx, r.ID); err != nil || got.IsOpen() || got.Answer != "fine" {
		t.Errorf("the appeal is %+v, %v", got, err)
	}
	// Without an open case, a later decision holds as well; an earlier one changes nothing.
	refuse := moderation.Closing{Link: a.Link, Sequence: 5, At: noon().Add(2 * time.Hour), By: "mod", Safety: link.Blocked}
	if _, err := q.Close(ctx, refuse); !errors.Is(err, moderation.ErrNoCase) {
		t.Errorf("%v", err)
	}
	check(refuse)
	if got := follow(t, q, 1, moderation.Step{Close: &allow}); len(got) != 0 {
		t.Errorf("closed %+v", got)
	}
	check(refuse)
}

// everyonesDestination: a decision for all workspaces closes the cases of all, and of what allowed holds
// no longer the case is opened again.
func everyonesDestination(t *testing.T, q Queue) {
	ctx := t.Context()
	first, second, third := refusal(1, "acme"), refusal(1, "rival"), refusal(2, "rival")
	second.ID = caseID(3)
	refuseAll(t, q, roomy(), first)
	refuseAll(t, q, roomy(), second, third)
	a := appeal(1)
	a.Link = moderation.Ref{ID: second.ID}
	o := opening(4, moderation.FromAppeal, 0)
	o.Link = a.Link
	must(t)(q.Open(ctx, a, o))
	allow := moderation.Closing{Link: moderation.Ref{ID: first.ID}, Sequence: 2, At: noon().Add(time.Hour), By: "mod", Safety: link.Clean, Answer: "fine", Everyone: true, Digest: first.Digest}
	if c := must(t)(q.Close(ctx, allow)); c.Link.ID != first.ID {
		t.Errorf("closed %+v", c)
	}
	if got := follow(t, q, 0, moderation.Step{Close: &allow}); len(got) != 0 {
		t.Errorf("closed again: %+v", got)
	}
	for _, id := range []link.ID{first.ID, second.ID} {
		if d, c := stored(t, q, id), must(t)(q.Case(ctx, id)); d.Decided != link.Clean || !d.Everyone || d.Sequence != 2 || c.IsOpen() || c.DecidedBy != "mod" || c.Sequence != 2 {
			t.Errorf("%+v, %+v", d, c)
		}
	}
	if got, err := q.Of(ctx, second.ID); err != nil || got.IsOpen() || got.Answer != "" || got.Safety != link.Clean {
		t.Errorf("the appeal of another workspace is %+v, %v", got, err)
	}
	if c := must(t)(q.Case(ctx, third.ID)); !c.IsOpen() {
		t.Errorf("another destination: %+v", c)
	}
	again := first
	for n, want := range []bool{false, true} { // a server that did not follow yet, and one that follows
		again.ID, again.First = caseID(20+n), allow.At.Add(moderation.AllowedFor).Add(time.Duration(n)*time.Second)
		if ids := refuseAll(t, q, roomy(), again); ids[0] != first.ID {
			t.Errorf("named %v", ids)
		}
		if d, c := stored(t, q, first.ID), must(t)(q.Case(ctx, first.ID)); c.IsOpen() != want || (d.Decided == 0) != want || d.URL != first.URL {
			t.Errorf("refused %d s after that: %+v, %+v", n, d, c)
		}
	}
	last := moderation.Closing{Link: moderation.Ref{ID: first.ID}, Sequence: 3, At: again.First, By: "mod", Safety: link.Blocked}
	must(t)(q.Close(ctx, last))
}

// erasedDestination: one is erased at once, as after 30 days.
func erasedDestination(t *testing.T, q Queue) {
	ctx := t.Context()
	open, decided := refusal(1, "acme"), refusal(2, "acme")
	refuseAll(t, q, roomy(), open, decided)
	must(t)(q.Close(ctx, moderation.Closing{Link: moderation.Ref{ID: decided.ID}, Sequence: 1, At: noon().Add(time.Hour), By: "mod", Safety: link.Blocked}))
	for _, id := range []link.ID{open.ID, decided.ID} {
		if err := q.EraseDestination(ctx, id); err != nil {
			t.Error(err)
		}
	}
	if _, err := q.Destination(ctx, open.ID); !errors.Is(err, moderation.ErrNoDestination) {
		t.Errorf("%v", err)
	}
	if d := stored(t, q, decided.ID); d.URL != "" || !d.Erased || d.Decided != link.Blocked {
		t.Errorf("%+v", d)
	}
	if err := q.EraseDestination(ctx, open.ID); !errors.Is(err, moderation.ErrNoDestination) {
		t.Errorf("twice: %v", err)
	}
}

func expiredDestinations(t *testing.T, q Queue) {
	ctx := t.Context()
	open, decided, later := refusal(1, "acme"), refusal(2, "acme"), refusal(3, "acme")
	refuseAll(t, q, roomy(), open, decided, later)
	a := appeal(2)
	a.Link = moderation.Ref{ID: decided.ID}
	o := opening(2, moderation.FromAppeal, 0)
	o.Link = a.Link
	must(t)(q.Open(ctx, a, o))
	c := moderation.Closing{Link: a.Link, Sequence: 1, At: noon().Add(time.Hour), By: "mod", Safety: link.Blocked, Answer: "no"}
	must(t)(q.Close(ctx, c))
	expire := func(before time.Time, n, want int) {
		t.Helper()
		if got, err := q.Expire(ctx, before, n); err != nil || got != want {
			t.Errorf("expired %d, %v; want %d", got, err, want)
		}
	}
	expire(open.First, 10, 0)
	expire(open.First.Add(time.Millisecond), 10, 1)
	if _, err := q.Destination(ctx, open.ID); !errors.Is(err, moderation.ErrNoDestination) {
		t.Errorf("what expired undecided: %v", err)
	}
	if _, err := q.Case(ctx, open.ID); !errors.Is(err, moderation.ErrNoCase) {
		t.Errorf("its case: %v", err)
	}
	expire(c.At, 1, 1) // later
	expire(c.At.Add(time.Millisecond), 10, 1)
	expire(c.At.Add(time.Hour), 10, 0)
	want := decided.Destination
	want.URL, want.CreatedBy, want.Network, want.Evidence, want.Erased = "", "", 0, "", true
	want.Decided, want.At, want.Sequence = link.Blocked, c.At, 1
	if diff := gocmp.Diff(want, stored(t, q, decided.ID)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := must(t)(q.Case(ctx, decided.ID)); got.Host != "" || got.Workspace != "acme" {
		t.Errorf("its case is %+v", got)
	}
	if got, err := q.Of(ctx, decided.ID); err != nil || !got.Erased || got.Reason != "" || got.Answer != "" {
		t.Errorf("its appeal is %+v, %v", got, err)
	}
}
