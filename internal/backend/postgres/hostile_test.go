package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/auth"
	"curt/internal/backend/postgres"
	"curt/internal/backend/postgres/accounts"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/moderation"
)

// newLink is a link that nobody counted.
func newLink(n int, code string) link.Link {
	at := linktest.Epoch().Add(time.Duration(n) * time.Millisecond)
	id := link.ID{6: 0x70, 8: 0x80, 14: byte(n >> 8), 15: byte(n)}
	return link.Link{
		ID: id, Key: link.Key{Code: link.Code(code)}, Destination: "https://example.com/", Workspace: link.WorkspaceDefault,
		Status: link.Active, Safety: link.Clean, Redirect: 302, Created: at, Updated: at,
	}
}

// What the database cannot hold is refused before it meets the links of others.
func badRows(t *testing.T, d *databases) {
	s := d.fresh(t)
	bad := map[string]func(*link.Link){
		"a NUL":       func(l *link.Link) { l.Title = "a\x00b" },
		"no UTF-8":    func(l *link.Link) { l.Tags = []string{"ok", "\xff\xfe"} },
		"half a rune": func(l *link.Link) { l.CreatedBy = "\xc3" },
	}
	for name, spoil := range bad {
		l := newLink(1, "bad")
		spoil(&l)
		if _, err := s.Create(t.Context(), l); !errors.Is(err, link.ErrInvalid) {
			t.Errorf("create with %s: %v", name, err)
		}
		if _, err := s.Replace(t.Context(), l, link.Edit{}); !errors.Is(err, link.ErrInvalid) {
			t.Errorf("replace with %s: %v", name, err)
		}
		results, err := s.CreateMany(t.Context(), linktest.Epoch(), linktest.Entries(newLink(2, "good"), l, newLink(3, "better")))
		if err != nil || results[0].Err != nil || !errors.Is(results[1].Err, link.ErrInvalid) || results[2].Err != nil {
			t.Errorf("among others, with %s: %+v, %v", name, results, err)
		}
	}
	nasty := newLink(9, "nasty")
	nasty.Tags = []string{`{"a",NULL}`, `NULL`, `\`, `"`, ` `, "\n", `},{`}
	nasty.Title = `'; DROP TABLE links; --`
	if _, err := s.Create(t.Context(), nasty); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), nasty.Key); err != nil || fmt.Sprint(got.Tags) != fmt.Sprint(nasty.Tags) || got.Title != nasty.Title {
		t.Errorf("got %q %q, %v", got.Tags, got.Title, err)
	}
}

// write repeats what gives a link a version until it is done: a busy machine may exceed the limit of a
// call.
func write(t *testing.T, s *postgres.Links, k link.Key, version link.Version, call func() error) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; {
		err := call()
		if stored, known := s.Get(t.Context(), k); err != nil && known == nil && stored.Version >= version {
			return // by an attempt before
		}
		if err == nil || time.Now().After(deadline) || !errors.Is(err, link.ErrUncertain) && !errors.Is(err, link.ErrUnavailable) {
			if err != nil {
				t.Errorf("write: %v", err)
			}
			return
		}
	}
}

// slow reports whether a call failed because a busy machine exceeded its limit, and fails the test if it did otherwise.
func slow(t *testing.T, err error) bool {
	t.Helper()
	if err != nil && !errors.Is(err, link.ErrUnavailable) {
		t.Error(err)
	}
	return err != nil
}

// Many callers at once over two processes: the numbers of the change log have no gap, and
// whoever reads along never sees one before all lower ones.
func changesInOrder(t *testing.T, d *databases) {
	first := d.fresh(t)
	stores := []*postgres.Links{first, d.again(t, first)}
	const callers, each = 12, 25
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			s := stores[i%2]
			for j := range each {
				l := newLink(1000*i+j, fmt.Sprintf("c%d-%d", i, j))
				write(t, s, l.Key, 1, func() error { _, err := s.Create(t.Context(), l); return err })
				if j%2 == 0 {
					var stored link.Link
					await(t, "a read", func() bool {
						var err error
						stored, err = s.Get(t.Context(), l.Key)
						return !slow(t, err) || t.Failed()
					})
					write(t, s, l.Key, stored.Version+1, func() error { _, err := s.Replace(t.Context(), stored, link.Edit{}); return err })
				}
			}
		})
	}
	const want = callers * (each + (each+1)/2)
	var seen link.Sequence
	for deadline := time.Now().Add(3 * time.Minute); seen < want && !t.Failed() && time.Now().Before(deadline); {
		changes, _, err := stores[1].Changes(t.Context(), seen.Position(), 7) // ErrConflict for a gap
		if slow(t, err) {
			continue
		}
		for _, c := range changes {
			if seen++; c.Sequence != seen {
				t.Fatalf("change %d after %d", c.Sequence, seen-1)
			}
		}
	}
	wg.Wait()
	if head, err := first.Head(t.Context()); err != nil || head != link.Sequence(want).Position() || seen != want {
		t.Errorf("saw %d, the head is %s, %v; want %d", seen, head, err, want)
	}
}

// Each process keeps progress of its own, and sees what those left that fell silent.
func instances(t *testing.T, d *databases) {
	url := d.front.URL(d.server.Copy(t, template))
	journal := func(name string) accounts.Journal {
		s, err := postgres.OpenLinks(t.Context(), postgres.LinksConfig{URL: url, Instance: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s.Accounts().Journal()
	}
	a, b := journal("a"), journal("b")
	walk := []moderation.Walk{{All: true, Seen: 7}}
	if err := errors.Join(
		a.StoreProgress(t.Context(), moderation.Progress{Applied: 9}),
		b.StoreProgress(t.Context(), moderation.Progress{Applied: 5, Walks: walk})); err != nil {
		t.Fatal(err)
	}
	if p, err := journal("c").Progress(t.Context()); err != nil || p.Applied != 5 || len(p.Walks) != 0 {
		t.Errorf("a newcomer begins with %+v, %v", p, err)
	}
	if left, err := a.Silent(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("silent are %+v, %v", left, err)
	}
	exec(t, url, "UPDATE instances SET kept = kept - interval '2 minutes' WHERE name = 'b'")
	left, err := a.Silent(t.Context())
	if err != nil || len(left) != 1 || left[0].Name != "b" || left[0].Progress.Applied != 5 || len(left[0].Progress.Walks) != 1 {
		t.Fatalf("silent are %+v, %v", left, err)
	}
	if err := errors.Join(b.StoreProgress(t.Context(), moderation.Progress{Applied: 6}), a.Forget(t.Context(), left[0])); err != nil {
		t.Fatal(err)
	}
	if p, err := b.Progress(t.Context()); err != nil || p.Applied != 6 {
		t.Errorf("one that came back was forgotten: %+v, %v", p, err)
	}
	exec(t, url, "UPDATE instances SET kept = kept - interval '2 minutes' WHERE name = 'b'")
	if left, err = a.Silent(t.Context()); err != nil || len(left) != 1 {
		t.Fatalf("silent are %+v, %v", left, err)
	}
	if err := a.Forget(t.Context(), left[0]); err != nil {
		t.Fatal(err)
	}
	if left, err = a.Silent(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("silent are %+v, %v", left, err)
	}
}

// A server that acknowledges what it may lose is refused, and so is a wrong address.
func unfit(t *testing.T, d *databases) {
	url := d.server.URL(d.server.Copy(t, template))
	exec(t, url, "CREATE ROLE careless LOGIN SUPERUSER; ALTER ROLE careless SET synchronous_commit = off")
	url = strings.Replace(url, "curt@", "careless@", 1)
	for _, wrong := range []string{url, d.server.URL("nowhere"), "postgres://x:y@127.0.0.1:1x/z"} {
		s, err := postgres.OpenLinks(t.Context(), postgres.LinksConfig{URL: wrong})
		if err == nil {
			_ = s.Close()
		}
		if !errors.Is(err, pgdb.ErrUnfit) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func exec(t *testing.T, url, statement string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	if _, err := c.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
}

// All processes tag visitors of a day with one key, which does not outlive it.
func dayKeys(t *testing.T, d *databases) {
	first := d.fresh(t)
	second := d.again(t, first)
	day := linktest.Epoch()
	key := func(s *postgres.Links, at time.Time) [16]byte {
		t.Helper()
		k, err := s.DayKey(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	monday := key(first, day)
	if key(second, day.Add(time.Hour)) != monday {
		t.Error("two processes have two keys for one day")
	}
	tuesday := key(second, day.Add(24*time.Hour))
	if tuesday == monday || key(first, day.Add(24*time.Hour)) != tuesday {
		t.Error("the next day has no key of its own")
	}
	if key(first, day) == monday {
		t.Error("the key of a past day is still there")
	}
	now := time.Now()
	today := key(first, now)
	tomorrow := key(second, now.Add(24*time.Hour))
	if tomorrow == today || key(second, now) != today || key(first, now.Add(24*time.Hour)) != tomorrow {
		t.Error("whoever asks for the key of the next day ends that of today")
	}
}

// answersLost has the server end each connection that writes, from within the write: whoever
// asked cannot know whether it happened, and is told so.
func answersLost(t *testing.T, d *databases) {
	s := d.fresh(t)
	l, err := s.Create(t.Context(), newLink(1, "kept"))
	if err != nil {
		t.Fatal(err)
	}
	url, _ := d.urls.Load(s)
	exec(t, url.(string), "CREATE FUNCTION vanish() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$")
	for _, table := range []string{"links", "journal", "keys", "leases"} {
		exec(t, url.(string), "CREATE TRIGGER vanish BEFORE INSERT OR UPDATE ON "+table+" FOR EACH ROW EXECUTE FUNCTION vanish()")
	}
	ban := moderation.Entry{
		At: linktest.Epoch(), Entity: moderation.Entity{Kind: moderation.KindHost, Name: "example.com"},
		Action: moderation.ActionBan, Safety: link.Blocked, Actor: "key:0190b3a1f0e07c3a8b1d5e6f7a8b9c0d",
	}
	for name, write := range map[string]func() error{
		"create":  func() error { _, err := s.Create(t.Context(), newLink(2, "lost")); return err },
		"replace": func() error { _, err := s.Replace(t.Context(), l, link.Edit{}); return err },
		"append":  func() error { _, err := s.Accounts().Journal().Append(t.Context(), ban); return err },
		"make a key": func() error {
			_, err := s.Accounts().Keys().Create(t.Context(), auth.Key{}, "", auth.Sum{})
			return err
		},
		"lease": func() error { _, err := s.Lease(t.Context(), "codes-7", 1); return err },
		"create many": func() error {
			_, err := s.CreateMany(t.Context(), linktest.Epoch(), linktest.Entries(newLink(3, "more")))
			return err
		},
		"create many, or find them": func() error {
			entries := linktest.Entries(newLink(4, "found"))
			entries[0].Link.Destination, entries[0].Dedupe = "https://example.com/found", true
			_, err := s.CreateMany(t.Context(), linktest.Epoch(), entries)
			return err
		},
	} {
		if err := write(); !errors.Is(err, link.ErrUncertain) || errors.Is(err, link.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUncertain", name, err)
		}
	}
}

// countedTaken creates codes that we made at once with one that is taken: that one alone is
// refused, and who sends all again is answered by what is stored.
func countedTaken(t *testing.T, d *databases) {
	s := d.fresh(t)
	counted := func(n int, code string) link.Link {
		l := newLink(n, code)
		l.CodeKind = link.Counted
		return l
	}
	if _, err := s.Create(t.Context(), counted(1, "Ab3dEf1")); err != nil {
		t.Fatal(err)
	}
	entries := []link.Creation{
		{Link: counted(2, "Ab3dEf2")}, {Link: counted(3, "Ab3dEf1")}, {Link: counted(4, "zz3dEf4")}, {Link: counted(5, "0b3dEf5")},
	}
	for range 2 {
		results, err := s.CreateMany(t.Context(), linktest.Epoch(), entries)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			if taken := i == 1; errors.Is(r.Err, link.ErrExists) != taken || !taken && (r.Err != nil || r.Link.Key != entries[i].Link.Key) {
				t.Errorf("entry %d: %+v, %v", i, r.Link.Key, r.Err)
			}
		}
	}
	if changes, _, err := s.Changes(t.Context(), "", 10); err != nil || len(changes) > 0 {
		t.Errorf("codes that we made are in the change log: %v, %v", changes, err)
	}
}
