package movein_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"curt/internal/backend/postgres"
	"curt/internal/backend/postgres/movein"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/testkit"
)

// A reserved key is no link to who moves or exports, and an import respects the reservation of another workspace while it
// lasts, as a create does.
func TestReservationsAreNoLinks(t *testing.T) {
	url := testkit.StartPostgres(t, testkit.PostgresConfig{}).Database(t)
	store, err := postgres.OpenLinks(t.Context(), postgres.LinksConfig{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	named := func(n int, code link.Code) link.Link {
		l := linktest.Chosen(n, code)
		l.Workspace, l.Version = "acme", 1
		return l
	}
	for code, c := range map[link.Code]link.Claim{
		"mine": {Workspace: "acme", For: time.Hour}, "theirs": {Workspace: "rival", For: time.Hour}, "lapsed": {Workspace: "rival", For: time.Millisecond},
	} {
		c.Key, c.Most = link.Key{Code: code}, 10
		if _, _, err := store.Reserve(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.AwaitNoServer(t, url)
	target, err := movein.OpenAsIs(t.Context(), url, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := target.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := target.Unused(t.Context()); err != nil {
		t.Fatal(err)
	}
	links := []link.Link{named(1, "mine"), named(2, "theirs"), named(3, "lapsed"), named(4, "free")}
	keys := make([]link.Key, len(links))
	for i := range links {
		keys[i] = links[i].Key
	}
	has := func(want int) {
		t.Helper()
		there, err := target.Get(t.Context(), keys)
		if err != nil || len(there) != want {
			t.Errorf("%d links are read, want %d: %v", len(there), want, err)
		}
		if page, next, err := target.Page(t.Context(), "", 100); err != nil || len(page) != want || next != "" {
			t.Errorf("a page of %d links, want %d: %v", len(page), want, err)
		}
		if n, err := target.CountLinks(t.Context()); err != nil || n != int64(want) {
			t.Errorf("%d links are counted, want %d: %v", n, want, err)
		}
	}
	has(0)
	results, err := target.Import(t.Context(), links)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		held := errors.As(r.Err, new(*link.HeldError)) && errors.Is(r.Err, link.ErrExists)
		if want := links[i].Key.Code == "theirs"; held != want || !want && r.Err != nil {
			t.Errorf("%s: %v", links[i].Key, r.Err)
		}
	}
	has(3)
}
