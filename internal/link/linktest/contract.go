package linktest

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
)

func contract(t *testing.T, h Harness) {
	t.Run("fields come back as they were stored", func(t *testing.T) { roundTrip(t, h) })
	t.Run("codes and domains are told apart", func(t *testing.T) { keys(t, h) })
	t.Run("one code on two domains, whoever is first", func(t *testing.T) { sharedCodes(t, h) })
	t.Run("sentinels", func(t *testing.T) { sentinels(t, h) })
	t.Run("replace keeps what never changes", func(t *testing.T) { keeps(t, h) })
	t.Run("a link moves to another workspace", func(t *testing.T) { moves(t, h) })
	t.Run("the change log holds each change once", func(t *testing.T) { changeLog(t, h) })
	t.Run("codes that were not counted are walked", func(t *testing.T) { unminted(t, h) })
}

// extreme fills every field to its bound.
func extreme() link.Link {
	l := sample(1, link.Code(strings.Repeat("_", link.MaxCode)))
	l.Key.Domain = "xn--bcher-kva.example:8443"
	l.Destination = "https://example.com/" + strings.Repeat("x", link.MaxDestination-20)
	l.Fallback = "https://example.org/?" + strings.Repeat("%00", 100)
	l.Title = strings.Repeat("ü", link.MaxTitle/2)
	l.Tags = []string{"3:foo", "ü,\"\\ \n", strings.Repeat("t", link.MaxTag)}
	l.Workspace = link.WorkspaceID(strings.Repeat("w", link.MaxName))
	l.CreatedBy = strings.Repeat("k", link.MaxName)
	l.Status, l.Safety, l.Redirect, l.CodeKind = link.Disabled, link.Legal, 308, link.Counted
	l.Starts = time.Date(1969, 12, 31, 23, 59, 59, int(999*time.Millisecond), time.UTC)
	l.Expires = time.Date(9999, 12, 31, 23, 59, 59, int(999*time.Millisecond), time.UTC)
	l.MaxClicks = math.MaxUint64
	l.ForwardQuery, l.NoIndex, l.Cacheable = true, true, true
	l.Later.Members = `{"":[{}],"when":1.50,"x_note":"ü\u0000\""}`
	return l
}

// later is what a release to come stores with a link: this one keeps it, but for a tombstone,
// and does not say where a link leads that needs what it does not know.
func later(t *testing.T, h Harness) {
	for name, kept := range map[string]link.Later{
		"needs":          {Needs: 1 << 63},
		"fields":         {Members: `{"x_note":"a note"}`},
		"needs a field":  {Needs: 3, Members: `{"x_password":"a hash"}`},
		"another format": {Needs: 4, Members: `{"v":9,"x_note":["a","b"]}`},
	} {
		stores := handles(t, h)
		l := sample(1, "Ab3dEf7")
		l.CodeKind, l.Later = link.Counted, kept
		l = mustCreate(t, stores[0], l)
		l.Title = "changed"
		l = mustReplace(t, stores[0], l)
		if got := mustGet(t, stores[1], l.Key); got.Later != kept || got.Title != "changed" {
			t.Errorf("%s: %+v became %+v of %q", name, kept, got.Later, got.Title)
		}
		var newer *link.NewerError
		switch target, err := stores[1].Lookup(t.Context(), l.Key); {
		case kept.Needs == 0:
			if diff := cmp.Diff(l.Target(), target); h.Features.MaxLag == 0 && diff != "" {
				t.Errorf("%s: looked up %v (-want +got):\n%s", name, err, diff)
			}
		case !errors.As(err, &newer) || newer.Needs != kept.Needs || newer.Key.Code != l.Key.Code || !errors.Is(err, link.ErrUnavailable):
			t.Errorf("%s: looked up %+v, %v", name, target, err)
		}
		mustReplace(t, stores[0], l.Tombstone(l.Updated))
		if got := mustGet(t, stores[1], l.Key); got.Later != (link.Later{}) {
			t.Errorf("%s: a tombstone has %+v", name, got.Later)
		}
		if target, err := settledLookup(t, h, stores[1], l.Key, func(t link.Target) bool { return t.Status == link.Deleted }); err != nil || target.Status != link.Deleted {
			t.Errorf("%s: a tombstone answers %+v, %v", name, target, err)
		}
	}
	for _, bad := range []link.Later{{Members: "{"}, {Members: `"` + strings.Repeat("x", link.MaxExtra) + `"`}} {
		l := sample(2, "0")
		l.Later = bad
		if _, err := h.Open(t).Create(t.Context(), l); !errors.Is(err, link.ErrInvalid) {
			t.Errorf("create with %.10s: %v", bad.Members, err)
		}
	}
}

func roundTrip(t *testing.T, h Harness) {
	bare := sample(2, "0")
	bare.Created, bare.Updated, bare.Tags = time.Time{}, time.Time{}, []string{}
	for _, l := range []link.Link{extreme(), bare} {
		stores := handles(t, h)
		l.Version, l.Spent = 77, 9 // ignored
		created := mustCreate(t, stores[0], l)
		l.Version, l.Spent = 1, 0
		if len(l.Tags) == 0 {
			l.Tags = nil
		}
		if diff := cmp.Diff(l, created); diff != "" {
			t.Errorf("created (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(l, mustGet(t, stores[1], l.Key)); diff != "" {
			t.Errorf("read by another handle (-want +got):\n%s", diff)
		}
		target, err := settledLookup(t, h, stores[1], l.Key, func(link.Target) bool { return true })
		if diff := cmp.Diff(l.Target(), target); err != nil || diff != "" {
			t.Errorf("looked up: %v (-want +got):\n%s", err, diff)
		}
	}
}

func keys(t *testing.T, h Harness) {
	s := h.Open(t)
	all := []link.Key{
		{Code: "abcd"},
		{Code: "Abcd"},
		{Code: "abcD"},
		{Code: "-"},
		{Code: "_"},
		{Code: "0000"},
		{Code: "0000000"},
		{Code: "zzzzzzzzzz"},
		{Code: "abcd-"},
		{Domain: "a.example", Code: "abcd"},
		{Domain: "b.example", Code: "abcd"},
	}
	for _, counted := range []bool{true, false} {
		for i, k := range all {
			if counted {
				k.Domain = "counted." + k.Domain
			}
			l := sample(i, k.Code)
			l.Key, l.CodeKind, l.Destination = k, Kind(counted), "https://example.com/"+k.String()
			if counted {
				l.Workspace = "other"
			}
			mustCreate(t, s, l)
		}
	}
	for _, k := range all {
		if got := mustGet(t, s, k); got.Key != k || got.Destination != "https://example.com/"+k.String() {
			t.Errorf("get %s returned %s to %s", k, got.Key, got.Destination)
		}
		counted := link.Key{Domain: "counted." + k.Domain, Code: k.Code}
		if got := mustGet(t, s, counted); got.Key != counted || got.CodeKind != link.Counted {
			t.Errorf("get %s returned %s", counted, got.Key)
		}
	}
}

// sharedCodes creates one code, of the shape that the permutation makes, twice on
// two domains each, counted and not, in every order.
func sharedCodes(t *testing.T, h Harness) {
	for i, order := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
		s := h.Open(t)
		for j, counted := range order {
			l := sample(10*i+j, "Ab3dEf7")
			l.Key.Domain, l.CodeKind = link.Domain([]string{"a.example", "b.example"}[j]), Kind(counted)
			l.Destination += string(l.Key.Domain)
			mustCreate(t, s, l)
		}
		for j, counted := range order {
			d := link.Domain([]string{"a.example", "b.example"}[j])
			l := mustGet(t, s, link.Key{Domain: d, Code: "Ab3dEf7"})
			if l.Destination != "https://example.com/Ab3dEf7"+string(d) || l.CodeKind != Kind(counted) {
				t.Errorf("counted %v: %s leads to %s", order, d, l.Destination)
			}
			for _, again := range []bool{true, false} {
				rival := sample(10*i+5, "Ab3dEf7")
				rival.Key.Domain, rival.CodeKind = d, Kind(again)
				_, err := s.Create(t.Context(), rival)
				want(t, "create a taken code", err, link.ErrExists)
			}
		}
	}
}

func sentinels(t *testing.T, h Harness) {
	ctx, s := t.Context(), h.Open(t)
	l := mustCreate(t, s, sample(1, "taken"))
	none := link.Key{Code: "none"}
	_, err := s.Get(ctx, none)
	want(t, "get nothing", err, link.ErrNotFound)
	_, err = s.Lookup(ctx, none)
	want(t, "look up nothing", err, link.ErrNotFound)
	_, err = s.Replace(ctx, sample(2, "none"), link.Edit{})
	want(t, "replace nothing", err, link.ErrNotFound)
	_, err = s.Create(ctx, sample(2, "taken"))
	want(t, "create a taken code", err, link.ErrExists)
	both := mustCreate(t, s, sample(3, "both"))
	both.Key = l.Key
	_, err = s.Create(ctx, both)
	want(t, "create a taken code with a used id", err, link.ErrExists)
	foreign := sample(1, "taken")
	foreign.Workspace = "foreign"
	if got := mustCreate(t, s, foreign); !cmp.Equal(got, l) { // the workspace does not tell links apart
		t.Errorf("the same id and key again (-want +got):\n%s", cmp.Diff(l, got))
	}
	stale := l
	stale.Version++
	_, err = s.Replace(ctx, stale, link.Edit{})
	want(t, "replace another version", err, link.ErrConflict)
	_, err = s.Create(ctx, link.Link{})
	want(t, "create nothing", err, link.ErrInvalid)
	bad := l
	bad.Redirect = 200
	_, err = s.Replace(ctx, bad, link.Edit{})
	want(t, "replace by an invalid link", err, link.ErrInvalid)
	for _, limit := range []int{0, -1, link.MaxPage + 1} {
		_, err = s.List(ctx, link.Filter{}, link.Page{Limit: limit})
		want(t, "list with a bad limit", err, link.ErrInvalid)
	}
	_, err = s.List(ctx, link.Filter{}, link.Page{Limit: 1, After: "forged"})
	want(t, "list with a forged cursor", err, link.ErrInvalid)
	if got := mustGet(t, s, l.Key); !cmp.Equal(got, l) {
		t.Errorf("refused writes changed the link:\n%s", cmp.Diff(l, got))
	}
}

func keeps(t *testing.T, h Harness) {
	s := h.Open(t)
	old := mustCreate(t, s, sample(1, "abcd"))
	change := extreme()
	change.Key, change.Version = old.Key, old.Version
	want := change
	want.ID, want.CodeKind, want.Created = old.ID, old.CodeKind, old.Created
	want.Version, want.Spent = 2, 0
	change.Spent = 4
	if diff := cmp.Diff(want, mustReplace(t, s, change)); diff != "" {
		t.Errorf("replaced (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, mustGet(t, s, old.Key)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// moves gives links to other workspaces, and back.
func moves(t *testing.T, h Harness) {
	ctx, stores := t.Context(), handles(t, h)
	base := head(t, stores[0])
	for i, code := range []link.Code{"Minted7", "an-alias"} {
		l := sample(i, code)
		l.CodeKind, l.Workspace = Kind(i == 0), "from"
		l = mustCreate(t, stores[0], l)
		l.Workspace = "to"
		moved := mustReplace(t, stores[1], l)
		l.Version = 2
		if diff := cmp.Diff(l, moved); diff != "" {
			t.Errorf("moved (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(l, mustGet(t, stores[0], l.Key)); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
		for w, expected := range map[link.WorkspaceID]int{"from": 0, "to": 1} {
			if got := walkList(t, stores[0], link.Filter{Workspace: w, Since: l.ID, Oldest: true}, 10, func() {}); len(got) != expected {
				t.Errorf("%s in workspace %s: %d links, want %d", code, w, len(got), expected)
			}
		}
		late := sample(i, code) // a retry of the create that comes late
		late.Workspace = "from"
		if got := mustCreate(t, stores[0], late); !cmp.Equal(got, l) {
			t.Errorf("created again (-want +got):\n%s", cmp.Diff(l, got))
		}
		_, err := stores[0].Create(ctx, sample(50+i, code))
		want(t, "create the code of a link that moved", err, link.ErrExists)
		back := l
		back.Workspace = "from"
		dead := mustReplace(t, stores[0], mustReplace(t, stores[1], back).Tombstone(epoch))
		if dead.Workspace != "from" || dead.Version != 4 {
			t.Errorf("deleted after it came back: %+v", dead)
		}
	}
	if got := changesAfter(t, stores[1], base); len(got) != 7 { // three each, and that the alias was made
		t.Errorf("%d changes: %v", len(got), got)
	}
}

// head is where the change log ends.
func head(t testing.TB, s link.Store) link.Position {
	t.Helper()
	at, err := s.Head(t.Context())
	if err != nil {
		t.Fatalf("head: %v", err)
	}
	return at
}

// changesAfter reads all changes after a position; the sequences of a partition must rise.
func changesAfter(t testing.TB, s link.Store, at link.Position) (all []link.Change) {
	t.Helper()
	for {
		some, next, err := s.Changes(t.Context(), at, 100)
		if err != nil {
			t.Fatalf("changes after %s: %v", at, err)
		}
		if len(some) == 0 {
			return all
		}
		heads, err := at.Heads()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range some {
			if c.Sequence <= heads.At(c.Partition) {
				t.Fatalf("change %d of partition %d came after %d", c.Sequence, c.Partition, heads.At(c.Partition))
			}
			heads = heads.Set(c.Partition, c.Sequence)
		}
		if at = next; heads.Position() != at {
			t.Fatalf("changes up to %s end at %s", heads.Position(), at)
		}
		all = append(all, some...)
	}
}

// unnumbered are changes without their sequences: others may write between them.
func unnumbered(all []link.Change) []link.Change {
	all = slices.Clone(all)
	for i := range all {
		all[i].Sequence = 0
	}
	return all
}

func changeLog(t *testing.T, h Harness) {
	ctx, stores := t.Context(), handles(t, h)
	base := head(t, stores[0])
	counted := sample(1, "minted1")
	counted.CodeKind = link.Counted
	counted = mustCreate(t, stores[0], counted)
	alias := mustCreate(t, stores[0], sample(2, "alias"))
	_, err := stores[0].Create(ctx, sample(2, "alias")) // a retry
	want(t, "retry", err, nil)
	_, err = stores[0].Create(ctx, sample(3, "alias"))
	want(t, "refused create", err, link.ErrExists)
	counted = mustReplace(t, stores[1], counted)
	alias = mustReplace(t, stores[0], alias.Tombstone(epoch))
	got := changesAfter(t, stores[1], base)
	expected := []link.Change{{Key: alias.Key, Version: 1}, {Key: counted.Key, Version: 2}, {Key: alias.Key, Version: 2}}
	if diff := cmp.Diff(expected, unnumbered(got)); diff != "" {
		t.Fatalf("changes (-want +got):\n%s", diff)
	}
	if one, _, err := stores[0].Changes(ctx, got[0].Sequence.Position(), 1); err != nil || !cmp.Equal(one, got[1:2]) {
		t.Errorf("one change after the first: %v, %v", one, err)
	}
	if later := changesAfter(t, stores[0], got[2].Sequence.Position()); len(later) != 0 {
		t.Errorf("changes after the last: %v", later)
	}
	if at, err := head(t, stores[0]).Sequence(); err != nil || at < got[2].Sequence {
		t.Errorf("head is %d before change %d, %v", at, got[2].Sequence, err)
	}
	if _, _, err := stores[0].Changes(ctx, (got[2].Sequence + 1_000_000).Position(), 1); !errors.Is(err, link.ErrConflict) {
		t.Errorf("a position behind the end: %v", err)
	}
	if _, _, err := stores[0].Changes(ctx, "x", 1); !errors.Is(err, link.ErrInvalid) {
		t.Errorf("no position: %v", err)
	}
}

func unminted(t *testing.T, h Harness) {
	s := h.Open(t)
	want := map[link.Key]bool{}
	for i := range 25 {
		l := sample(i, link.Code("code"+strings.Repeat("x", i)))
		l.CodeKind = Kind(i%5 == 0)
		mustCreate(t, s, l)
		if l.CodeKind == link.Chosen {
			want[l.Key] = true
		}
	}
	deleted := mustGet(t, s, link.Key{Code: "codex"})
	mustReplace(t, s, deleted.Tombstone(epoch))
	got := map[link.Key]bool{}
	for k := range walkChosen(t, s, 7) {
		if got[k] {
			t.Errorf("%s came twice", k)
		}
		got[k] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func walkChosen(t testing.TB, s link.Store, n int) func(yield func(link.Key) bool) {
	return func(yield func(link.Key) bool) {
		var at link.Cursor
		for {
			keys, next, err := s.Chosen(t.Context(), at, n)
			if err != nil || len(keys) > n {
				t.Fatalf("unminted after %q: %d keys, %v", at, len(keys), err)
			}
			for _, k := range keys {
				if !yield(k) {
					return
				}
			}
			if at = next; at == "" {
				return
			}
		}
	}
}

func contexts(t *testing.T, h Harness) {
	s := h.Open(t)
	l := mustCreate(t, s, sample(1, "abcd"))
	reason := errors.New("the caller went home")
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	late, stop := context.WithDeadline(t.Context(), epoch)
	defer stop()
	for name, op := range operations(s, l) {
		want(t, name+" when cancelled", op(cancelled), reason)
		want(t, name+" after the deadline", op(late), context.DeadlineExceeded)
	}
	if got := mustGet(t, s, l.Key); !cmp.Equal(got, l) {
		t.Errorf("a cancelled write happened:\n%s", cmp.Diff(l, got))
	}
	if err := s.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	for name, op := range operations(s, l) {
		want(t, name+" after close", op(t.Context()), link.ErrUnavailable)
	}
}

// operations are all methods of a store that may fail.
func operations(s link.Store, l link.Link) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"lookup":  func(ctx context.Context) error { _, err := s.Lookup(ctx, l.Key); return err },
		"get":     func(ctx context.Context) error { _, err := s.Get(ctx, l.Key); return err },
		"create":  func(ctx context.Context) error { _, err := s.Create(ctx, sample(9, "new")); return err },
		"replace": func(ctx context.Context) error { _, err := s.Replace(ctx, l, link.Edit{}); return err },
		"list": func(ctx context.Context) error {
			_, err := s.List(ctx, link.Filter{}, link.Page{Limit: 1})
			return err
		},
		"expired": func(ctx context.Context) error { _, _, err := s.Expired(ctx, "", epoch, 1); return err },
		"changes": func(ctx context.Context) error { _, _, err := s.Changes(ctx, "", 1); return err },
		"head":    func(ctx context.Context) error { _, err := s.Head(ctx); return err },
		"chosen":  func(ctx context.Context) error { _, _, err := s.Chosen(ctx, "", 1); return err },
	}
}
