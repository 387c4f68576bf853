package moderationtest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/moderation"
)

// sequences names entries by their numbers.
func sequences(entries []moderation.Entry) (numbers []uint64) {
	for i := range entries {
		numbers = append(numbers, entries[i].Sequence)
	}
	return numbers
}

func finds(t *testing.T, s Store) {
	evil := moderation.Entity{Kind: moderation.KindHost, Name: "evil.example"}
	for i := range 6 { // 1, 3, 5 about evil.example; 2, 4, 6 about links, by the policy
		e := act(t, moderation.ActionBan, evil.Kind, evil.Name)
		if i%2 == 1 {
			e = Decision(t, i, link.Warn)
			e.Actor = moderation.ActorPolicy
		}
		e.At = e.At.Add(time.Duration(i) * time.Millisecond)
		mustAppend(t, s, e)
	}
	for _, tt := range []struct {
		what   string
		f      moderation.Filter
		before uint64
		n      int
		want   []uint64
	}{
		{"all", moderation.Filter{}, 0, 10, []uint64{6, 5, 4, 3, 2, 1}},
		{"a page", moderation.Filter{}, 5, 2, []uint64{4, 3}},
		{"the end", moderation.Filter{}, 1, 10, nil},
		{"an entity", moderation.Filter{Entity: evil}, 0, 10, []uint64{5, 3, 1}},
		{"an entity's page", moderation.Filter{Entity: evil}, 5, 1, []uint64{3}},
		{"the kind counts", moderation.Filter{Entity: moderation.Entity{Kind: moderation.KindDomain, Name: evil.Name}}, 0, 10, nil},
		{"an actor", moderation.Filter{Actor: moderation.ActorPolicy}, 0, 10, []uint64{6, 4, 2}},
		{"an actor's page", moderation.Filter{Actor: moderation.ActorPolicy}, 6, 1, []uint64{4}},
		{"an entity and an actor", moderation.Filter{Entity: evil, Actor: "moderator"}, 4, 10, []uint64{3, 1}},
		{"neither together", moderation.Filter{Entity: evil, Actor: moderation.ActorPolicy}, 0, 10, nil},
		{"since", moderation.Filter{Since: epoch().Add(4 * time.Millisecond)}, 0, 10, []uint64{6, 5}},
		{"since, by an actor", moderation.Filter{Since: epoch().Add(2 * time.Millisecond), Actor: "moderator"}, 0, 10, []uint64{5, 3}},
		{"since tomorrow", moderation.Filter{Since: epoch().AddDate(0, 0, 1)}, 0, 10, nil},
	} {
		got, err := s.Find(t.Context(), tt.f, tt.before, tt.n)
		if err != nil {
			t.Fatal(err)
		}
		same(t, tt.what, sequences(got), tt.want)
	}
}

func stands(t *testing.T, s Store) {
	if _, err := s.EffectiveDecision(t.Context(), IDOf(1)); !errors.Is(err, moderation.ErrNotFound) {
		t.Errorf("of nothing: %v", err)
	}
	warn, answer := Decision(t, 1, link.Warn), Decision(t, 1, link.Clean)
	answer.Action = moderation.ActionAnswer
	ban := act(t, moderation.ActionBan, moderation.KindLink, warn.Entity.Name)
	ban.Link = warn.Link // a ban is no decision of the link's own
	stranger := Decision(t, 2, link.Blocked)
	stranger.Entity = warn.Entity // whoever asks for a key that is taken
	policy := func(s link.Safety) moderation.Entry {
		e := Decision(t, 1, s)
		e.Actor = moderation.ActorPolicy
		return e
	}
	for _, step := range []struct {
		entry moderation.Entry
		want  link.Safety
	}{
		{policy(link.Quarantined), link.Quarantined},
		{policy(link.Clean), link.Clean},
		{warn, link.Warn},
		{ban, link.Warn},
		{stranger, link.Warn},
		{answer, link.Clean},
		{warn, link.Warn},
		{policy(link.Quarantined), link.Quarantined},
		{policy(link.Clean), link.Warn}, // no lower than a person decided
		{answer, link.Clean},
		{policy(link.Warn), link.Warn},
	} {
		mustAppend(t, s, step.entry)
		got, err := s.EffectiveDecision(t.Context(), warn.Link)
		if err != nil || got.Safety != step.want || got.Link != warn.Link {
			t.Errorf("stands: %v, %v; want safety %d", got, err, step.want)
		}
	}
}

func bans(t *testing.T, s Store) {
	const evil, worse = "evil.example", "worse.example"
	ban, lift := moderation.ActionBan, moderation.ActionLift
	for _, step := range []struct {
		entry moderation.Entry
		want  []uint64
	}{
		{act(t, lift, moderation.KindHost, evil), nil}, // of nothing
		{act(t, ban, moderation.KindHost, evil), []uint64{2}},
		{act(t, ban, moderation.KindDomain, evil), []uint64{2, 3}},
		{Decision(t, 1, link.Blocked), []uint64{2, 3}},
		{act(t, ban, moderation.KindHost, evil), []uint64{3, 5}}, // anew
		{act(t, ban, moderation.KindHost, worse), []uint64{3, 5, 6}},
		{act(t, lift, moderation.KindHost, evil), []uint64{3, 6}},
		{act(t, ban, moderation.KindHost, evil), []uint64{3, 6, 8}},
	} {
		mustAppend(t, s, step.entry)
		got, err := s.Bans(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		same(t, step.entry.Entity.String(), sequences(got), step.want)
	}
}

func verdicts(t *testing.T, s Store) {
	verdict := func(w link.WorkspaceID, a moderation.Action, safety link.Safety) moderation.Entry {
		e := Decision(t, 3, safety)
		e.Entity, e.Action = moderation.OfDestination(w, moderation.DigestOf("https://evil.example/")), a
		return e
	}
	erased := act(t, moderation.ActionErase, moderation.KindHost, "")
	erased.Entity = moderation.OfDestination("acme", moderation.Hash{1})
	stored := mustAppend(t, s, Decision(t, 1, link.Warn), verdict("acme", moderation.ActionDecide, link.Blocked), erased, verdict("", moderation.ActionAnswer, link.Clean))
	got, err := s.Verdicts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "verdicts", got, []moderation.Entry{stored[1], stored[3]})
}

func erases(t *testing.T, s Store) {
	named := Decision(t, 1, link.Blocked)
	named.Reason, named.Evidence = Text(t, "reported by Jane Roe"), Text(t, "jane.roe@example.com")
	plain := Decision(t, 2, link.Warn)
	plain.Reason = moderation.Text{}
	stored := mustAppend(t, s, named, plain, Decision(t, 3, link.Warn))
	by := act(t, moderation.ActionErase, moderation.KindLink, named.Entity.Name)
	for _, missing := range []uint64{0, 4} {
		if _, err := s.Erase(t.Context(), missing, by); !errors.Is(err, moderation.ErrNotFound) {
			t.Errorf("entry %d: %v", missing, err)
		}
	}
	for i, sequence := range []uint64{1, 2, 1} {
		said, err := s.Erase(t.Context(), sequence, by)
		if err != nil {
			t.Fatal(err)
		}
		want := by
		want.Sequence, want.Hash = uint64(4+i), said.Hash
		same(t, "said", said, want)
	}
	got := all(t, s)
	gone := stored[0]
	gone.Reason, gone.Evidence = gone.Reason.Erase(), gone.Evidence.Erase()
	same(t, "erased", got[:3], []moderation.Entry{gone, stored[1], stored[2]})
	if !got[0].Reason.Erased || got[0].Reason.Body != "" || got[0].Reason.Salt != [16]byte{} || len(got) != 6 {
		t.Errorf("%d entries, the first %+v", len(got), got[0])
	}
	if stands, err := s.EffectiveDecision(t.Context(), named.Link); err != nil || stands.Safety != link.Blocked || !stands.Reason.Erased {
		t.Errorf("stands: %+v, %v", stands, err)
	}
}

func progresses(t *testing.T, s Store) {
	got, err := s.Progress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "none", got, moderation.Progress{})
	for _, want := range []moderation.Progress{
		{Applied: 7, Walks: []moderation.Walk{
			{Entities: []moderation.Entity{{Kind: moderation.KindHost, Name: "evil.example"}}, After: "\x00\xffcursor", Seen: 10, Changed: 3},
			{All: true},
		}},
		{Applied: 1<<64 - 1},
	} {
		if err := s.StoreProgress(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		if got, err = s.Progress(t.Context()); err != nil {
			t.Fatal(err)
		}
		same(t, "kept", got, want)
	}
}

// appends lets a hundred callers append at once: nobody's entries are torn apart, lost or
// doubled, and the numbers have no gap.
func appends(t *testing.T, s Store) {
	const callers, each = 100, 3
	var done sync.WaitGroup
	for i := range callers {
		batch := make([]moderation.Entry, each)
		for n := range batch {
			batch[n] = Decision(t, i, link.Warn)
			batch[n].Actor = fmt.Sprintf("moderator-%d", i)
		}
		done.Go(func() {
			stored, err := s.Append(t.Context(), batch...)
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
				return
			}
			for n := range stored {
				if stored[n].Sequence != stored[0].Sequence+uint64(n) || stored[n].Actor != batch[n].Actor {
					t.Errorf("caller %d: torn apart: %v", i, sequences(stored))
				}
			}
		})
	}
	done.Wait()
	seen := map[string]int{}
	for _, e := range all(t, s) {
		seen[e.Actor]++
	}
	for actor, n := range seen {
		if n != each || len(seen) != callers {
			t.Errorf("%d callers; %s has %d entries, want %d", len(seen), actor, n, each)
		}
	}
}

func shared(t *testing.T, s, other Store) {
	mustAppend(t, s, act(t, moderation.ActionBan, moderation.KindHost, "evil.example"))
	if bans, err := other.Bans(t.Context()); err != nil || len(bans) != 1 {
		t.Errorf("the other handle has %v, %v", bans, err)
	}
	if _, err := other.Erase(t.Context(), 1, act(t, moderation.ActionErase, moderation.KindHost, "evil.example")); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, Decision(t, 1, link.Warn))
	same(t, "both", all(t, s), all(t, other))
	if err := other.StoreProgress(t.Context(), moderation.Progress{Applied: 2}); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Progress(t.Context()); err != nil || p.Applied != 2 {
		t.Errorf("progress %v, %v", p, err)
	}
	t.Run("both append at once", func(t *testing.T) {
		before := len(all(t, s))
		var done sync.WaitGroup
		for i := range 40 {
			e := Decision(t, i, link.Warn)
			done.Go(func() {
				if _, err := []Store{s, other}[i%2].Append(t.Context(), e); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
		same(t, "entries", len(all(t, other)), before+40)
	})
}
