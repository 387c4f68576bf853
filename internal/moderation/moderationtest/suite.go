package moderationtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
	"curt/internal/moderation"
)

// Store is what a backend offers to moderation.
type Store interface {
	moderation.Journal
	moderation.ProgressStore
}

// Harness is what a backend gives to the suite.
type Harness struct {
	// Open returns an empty store, and what ends it.
	Open func(t testing.TB) (Store, io.Closer)

	// Again returns a second handle on the data of s, as another process would have it;
	// nil = the store lives in one process.
	Again func(t testing.TB, s Store) Store
}

// Run proves a store: every case is a subtest on one of its own.
func Run(t *testing.T, h Harness) {
	for name, prove := range map[string]func(*testing.T, Store){
		"entries come back as appended":        roundTrips,
		"one append is one piece":              allOrNone,
		"what no journal may hold is refused":  refuses,
		"time never goes back":                 monotonic,
		"entries are found, the newest first":  finds,
		"the newest decision of a link stands": stands,
		"bans stand until they are lifted":     bans,
		"verdicts are those of destinations":   verdicts,
		"an erased text is gone, the rest not": erases,
		"progress is kept":                     progresses,
		"a hundred append at once":             appends,
		"a cancelled caller gets an error":     cancelled,
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := h.Open(t)
			prove(t, s)
		})
	}
	t.Run("a closed store cannot be asked", func(t *testing.T) { closed(t, h) })
	if h.Again != nil {
		t.Run("another handle sees it all at once", func(t *testing.T) {
			s, _ := h.Open(t)
			shared(t, s, h.Again(t, s))
		})
	}
}

// epoch is the time of the suite's entries; nothing here asks the clock.
func epoch() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 123e6, time.UTC) }

// IDOf returns the id of the n-th link of a test.
func IDOf(n int) link.ID {
	id, err := link.NewID(epoch().Add(time.Duration(n)*time.Millisecond), zeros{})
	if err != nil {
		panic(err) // zeros never fails
	}
	return id
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Text returns a text with a random salt.
func Text(tb testing.TB, body string) moderation.Text {
	tb.Helper()
	text, err := moderation.NewText(body, rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// Decision returns an entry that decides about the n-th link.
func Decision(tb testing.TB, n int, s link.Safety) moderation.Entry {
	tb.Helper()
	return moderation.Entry{
		At: epoch(), Entity: moderation.OfLink(link.Key{Code: link.Code(fmt.Sprintf("link-%d", n))}), Link: IDOf(n),
		Action: moderation.ActionDecide, Safety: s, Actor: "moderator", Reason: Text(tb, "because"),
	}
}

// act returns an entry about an entity that is no link.
func act(tb testing.TB, a moderation.Action, kind moderation.Kind, name string) moderation.Entry {
	tb.Helper()
	return moderation.Entry{
		At: epoch(), Entity: moderation.Entity{Kind: kind, Name: name}, Action: a, Safety: link.Blocked,
		Actor: "moderator", Reason: Text(tb, "because"),
	}
}

func mustAppend(tb testing.TB, j moderation.Journal, entries ...moderation.Entry) []moderation.Entry {
	tb.Helper()
	stored, err := j.Append(tb.Context(), entries...)
	if err != nil {
		tb.Fatalf("Append: %v", err)
	}
	return stored
}

// all reads and verifies the whole journal.
func all(tb testing.TB, j moderation.Reader) (entries []moderation.Entry) {
	tb.Helper()
	if _, err := moderation.Verify(tb.Context(), j, func(e *moderation.Entry) { entries = append(entries, *e) }); err != nil {
		tb.Fatal(err)
	}
	return entries
}

func same(tb testing.TB, what string, got, want any) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func roundTrips(t *testing.T, s Store) {
	if got := all(t, s); len(got) != 0 {
		t.Fatalf("an empty journal holds %v", got)
	}
	full := Decision(t, 1, link.Legal)
	full.Entity = moderation.OfLink(link.Key{Domain: "xn--mnchen-3ya.example:8443", Code: link.Code(strings.Repeat("Z", link.MaxCode))})
	full.Action, full.Score, full.Actor = moderation.ActionAnswer, 100, strings.Repeat("k", link.MaxName)
	full.Reason, full.Evidence = Text(t, strings.Repeat("ü", moderation.MaxReason/2)), Text(t, strings.Repeat("\x00\n\"", moderation.MaxEvidence/3))
	bare := moderation.Entry{
		At: time.UnixMilli(1).UTC(), Entity: moderation.Entity{Kind: moderation.KindNetwork, Name: "192.0.2.0/24"}, Action: moderation.ActionLift,
		Safety: link.Clean, Actor: moderation.ActorPolicy,
	}
	stored := append(mustAppend(t, s, bare, full), mustAppend(t, s, Decision(t, 2, link.Clean))...)
	for i, want := range []moderation.Entry{bare, full} {
		want.Sequence, want.Hash = uint64(i)+1, stored[i].Hash
		same(t, "stored", stored[i], want)
	}
	same(t, "read", all(t, s), stored)
	for after := range 5 {
		page, err := s.Read(t.Context(), uint64(after), 2)
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("behind %d", after), len(page), max(0, min(2, len(stored)-after)))
	}
	none, err := s.Append(t.Context())
	if err != nil || len(none) != 0 {
		t.Errorf("nothing appended: %v, %v", none, err)
	}
}

func allOrNone(t *testing.T, s Store) {
	good := Decision(t, 1, link.Warn)
	bad := Decision(t, 2, link.Warn)
	bad.Actor = ""
	if _, err := s.Append(t.Context(), good, good, bad); !errors.Is(err, moderation.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	if got := all(t, s); len(got) != 0 {
		t.Errorf("%d of three entries were appended", len(got))
	}
	many := make([]moderation.Entry, moderation.MaxAppend)
	for i := range many {
		many[i] = Decision(t, i, link.Warn)
	}
	mustAppend(t, s, many...)
	if _, err := s.Append(t.Context(), append(many, good)...); !errors.Is(err, moderation.ErrInvalid) {
		t.Errorf("%d at once: %v", len(many)+1, err)
	}
	same(t, "entries", len(all(t, s)), len(many))
}

// Invalid are entries that no journal may hold, by what is wrong with them.
func Invalid(tb testing.TB) map[string]moderation.Entry {
	tb.Helper()
	entries := map[string]moderation.Entry{}
	spoil := func(what string, f func(*moderation.Entry)) {
		e := Decision(tb, 1, link.Warn)
		f(&e)
		entries[what] = e
	}
	spoil("no entity", func(e *moderation.Entry) { e.Entity = moderation.Entity{} })
	spoil("a kind that is none", func(e *moderation.Entry) { e.Entity.Kind, e.Action = "planet", moderation.ActionBan })
	spoil("a key that is none", func(e *moderation.Entry) { e.Entity.Name = "no-slash" })
	spoil("a ban of a key that is none", func(e *moderation.Entry) { e.Entity.Name, e.Action = "a/b/c", moderation.ActionBan })
	spoil("a long name", func(e *moderation.Entry) {
		e.Entity, e.Action = moderation.Entity{Kind: moderation.KindHost, Name: strings.Repeat("a", 401)}, moderation.ActionBan
	})
	spoil("a name that is no UTF-8", func(e *moderation.Entry) {
		e.Entity, e.Action = moderation.Entity{Kind: moderation.KindHost, Name: "\xff"}, moderation.ActionBan
	})
	spoil("a decision about a host", func(e *moderation.Entry) {
		e.Entity = moderation.Entity{Kind: moderation.KindHost, Name: "evil.example"}
	})
	spoil("a ban of a destination", func(e *moderation.Entry) {
		e.Entity, e.Action = moderation.OfDestination("acme", moderation.Hash{1}), moderation.ActionBan
	})
	spoil("a destination without a digest", func(e *moderation.Entry) {
		e.Entity = moderation.Entity{Kind: moderation.KindDestination, Name: "acme/" + strings.Repeat("x", 64)}
	})
	spoil("no link", func(e *moderation.Entry) { e.Link = link.ID{} })
	spoil("no action", func(e *moderation.Entry) { e.Action = "" })
	spoil("no safety", func(e *moderation.Entry) { e.Safety = 0 })
	spoil("a safety that is none", func(e *moderation.Entry) { e.Safety = link.Legal + 1 })
	spoil("a low score", func(e *moderation.Entry) { e.Score = -1 })
	spoil("a high score", func(e *moderation.Entry) { e.Score = 101 })
	spoil("no actor", func(e *moderation.Entry) { e.Actor = "" })
	spoil("a long actor", func(e *moderation.Entry) { e.Actor = strings.Repeat("k", link.MaxName+1) })
	spoil("no time", func(e *moderation.Entry) { e.At = time.Time{} })
	spoil("microseconds", func(e *moderation.Entry) { e.At = e.At.Add(time.Microsecond) })
	spoil("another zone", func(e *moderation.Entry) { e.At = e.At.In(time.FixedZone("", 3600)) })
	spoil("a long reason", func(e *moderation.Entry) { e.Reason = Text(tb, strings.Repeat("x", moderation.MaxReason+1)) })
	spoil("long evidence", func(e *moderation.Entry) { e.Evidence = Text(tb, strings.Repeat("x", moderation.MaxEvidence+1)) })
	spoil("a reason that is no UTF-8", func(e *moderation.Entry) { e.Reason = Text(tb, "\xff") })
	spoil("a reason without its commitment", func(e *moderation.Entry) { e.Reason = moderation.Text{Body: "because"} })
	spoil("the commitment of another reason", func(e *moderation.Entry) { e.Reason.Body = "no" })
	spoil("a salt of nothing", func(e *moderation.Entry) { e.Reason = moderation.Text{Salt: [16]byte{1}} })
	spoil("a text erased before", func(e *moderation.Entry) { e.Reason = e.Reason.Erase() })
	return entries
}

func refuses(t *testing.T, s Store) {
	mustAppend(t, s, Decision(t, 1, link.Warn))
	for what, e := range Invalid(t) {
		if _, err := s.Append(t.Context(), e); !errors.Is(err, moderation.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := s.Erase(t.Context(), 1, e); !errors.Is(err, moderation.ErrInvalid) {
			t.Errorf("%s, to erase: %v", what, err)
		}
	}
	same(t, "entries", len(all(t, s)), 1)
}

func monotonic(t *testing.T, s Store) {
	first, second := Decision(t, 1, link.Warn), Decision(t, 2, link.Warn)
	second.At = first.At.Add(-time.Hour)
	third := second
	third.At = first.At.Add(time.Millisecond)
	mustAppend(t, s, first)
	mustAppend(t, s, second, third)
	got := all(t, s)
	if !got[1].At.Equal(first.At) || !got[2].At.Equal(third.At) {
		t.Errorf("times %v, %v, %v", got[0].At, got[1].At, got[2].At)
	}
}

func closed(t *testing.T, h Harness) {
	s, end := h.Open(t)
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	for what, err := range everyCall(t.Context(), t, s) {
		if !errors.Is(err, link.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func cancelled(t *testing.T, s Store) {
	mustAppend(t, s, Decision(t, 1, link.Warn))
	cause := errors.New("went home")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for what, err := range everyCall(ctx, t, s) {
		if !errors.Is(err, cause) {
			t.Errorf("%s: %v", what, err)
		}
	}
	same(t, "entries", len(all(t, s)), 1)
}

// everyCall makes each call once and returns its error.
func everyCall(ctx context.Context, t *testing.T, s Store) map[string]error {
	t.Helper()
	errs := map[string]error{}
	_, errs["Append"] = s.Append(ctx, Decision(t, 2, link.Warn))
	_, errs["Read"] = s.Read(ctx, 0, 1)
	_, errs["Find"] = s.Find(ctx, moderation.Filter{}, 0, 1)
	_, errs["Standing"] = s.EffectiveDecision(ctx, IDOf(1))
	_, errs["Bans"] = s.Bans(ctx)
	_, errs["Verdicts"] = s.Verdicts(ctx)
	_, errs["Erase"] = s.Erase(ctx, 1, act(t, moderation.ActionErase, moderation.KindHost, "evil.example"))
	_, errs["Progress"] = s.Progress(ctx)
	errs["KeepProgress"] = s.StoreProgress(ctx, moderation.Progress{Applied: 1})
	return errs
}
