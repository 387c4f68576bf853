package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// newLink is a link that nobody minted.
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
		if _, err := s.Replace(t.Context(), l); !errors.Is(err, link.ErrInvalid) {
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
				l, err := s.Create(t.Context(), newLink(1000*i+j, fmt.Sprintf("c%d-%d", i, j)))
				if err == nil && j%2 == 0 {
					_, err = s.Replace(t.Context(), l)
				}
				if err != nil {
					t.Errorf("write: %v", err)
				}
			}
		})
	}
	const want = callers * (each + (each+1)/2)
	var seen link.Sequence
	for deadline := time.Now().Add(30 * time.Second); seen < want && !t.Failed() && time.Now().Before(deadline); {
		changes, err := stores[1].Changes(t.Context(), seen, 7) // ErrConflict for a gap
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if seen++; c.Sequence != seen {
				t.Fatalf("change %d after %d", c.Sequence, seen-1)
			}
		}
	}
	wg.Wait()
	if head, err := first.Head(t.Context()); err != nil || head != want || seen != want {
		t.Errorf("saw %d, the head is %d, %v; want %d", seen, head, err, want)
	}
}

// Only one process at a time has a database that it wants to itself.
func holders(t *testing.T, d *databases) {
	url := d.front.URL(d.server.Copy(t, template))
	open := func(ctx context.Context, name string) (*postgres.Links, error) {
		return postgres.OpenLinks(ctx, postgres.LinksConfig{URL: url, Holder: name})
	}
	a, err := open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if s, err := open(short, "b"); err == nil {
		_ = s.Close()
		t.Error("another has it too")
	}
	again, err := open(t.Context(), "a") // after kill -9
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Close(), again.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := open(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	exec(t, url, "UPDATE holder SET name = 'c', until = now() + interval '1 hour'") // while b slept
	if err := b.Run(t.Context()); !errors.Is(err, postgres.ErrHeld) {
		t.Errorf("taken over: %v", err)
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
		if !errors.Is(err, postgres.ErrUnfit) {
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
}
