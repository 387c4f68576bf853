package postgres_test

import (
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"curt/internal/backend/postgres"
	"curt/internal/link"
	"curt/internal/testkit/relay"
)

// relayed opens a store with a relay before its database.
func relayed(t *testing.T, d *databases) (*postgres.Links, *relay.Relay) {
	t.Helper()
	u, err := url.Parse(d.server.URL(d.server.Copy(t, template)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := relay.Start(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	u.Host = r.Addr()
	return d.open(t, u.String()), r
}

// crowd reads and changes links from many goroutines at once, and returns when all were
// answered, whatever they were.
func crowd(t *testing.T, s *postgres.Links, links []link.Link) {
	t.Helper()
	var all sync.WaitGroup
	for _, l := range links {
		all.Go(func() { _, _ = s.Replace(t.Context(), l, link.Edit{}) })
		all.Go(func() { _, _ = s.Get(t.Context(), l.Key) })
	}
	all.Wait()
}

// fill has a crowd use every connection.
func fill(t *testing.T, s *postgres.Links, links []link.Link) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !s.Full(); crowd(t, s, links) {
		if time.Now().After(end) {
			t.Fatal("three minutes passed, and not every connection was used")
		}
	}
}

// failures calls f until it succeeds, and returns how often it failed; no more than 10 times.
func failures(f func() error) (n int, last error) {
	for ; n < 10; n++ {
		err := f()
		if err == nil {
			return n, last
		}
		last = err
	}
	return n, last
}

// fellSilent has every connection die without a word. A call gives up after two seconds, so that
// how many fail tells how long what is dead was in the way: four writers that are waited for by
// pgx, for 15 s, fail seven creates, and four readers that are each asked for two seconds
// fail four look-ups.
func fellSilent(t *testing.T, d *databases) {
	for name, hurt := range map[string]func(r *relay.Relay, crowd func()){
		"new connections work": func(r *relay.Relay, crowd func()) { r.Silence(); crowd() },
		"none works, for a while": func(r *relay.Relay, crowd func()) {
			r.Hold(true)
			r.Silence()
			crowd() // its statements are to be cancelled
			crowd() // which nobody hears either
			r.Hold(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := relayed(t, d)
			made := 0
			create := func() (link.Link, error) {
				made++
				return s.Create(t.Context(), newLink(made, fmt.Sprintf("c%d", made)))
			}
			var links []link.Link
			for range 40 {
				l, err := create()
				if err != nil {
					t.Fatal(err)
				}
				links = append(links, l)
			}
			fill(t, s, links)
			hurt(r, func() { crowd(t, s, links) })
			if failed, err := failures(func() error { _, err := create(); return err }); failed > 3 {
				t.Errorf("%d creates failed, the last: %v", failed, err)
			}
			fill(t, s, links)
			r.Silence() // of idle ones
			if failed, err := failures(func() error { _, err := s.Lookup(t.Context(), links[0].Key); return err }); failed > 2 {
				t.Errorf("%d look-ups failed, the last: %v", failed, err)
			}
		})
	}
}

// terminated has the server end all connections, again and again: visitors do not notice.
func terminated(t *testing.T, d *databases) {
	s := d.fresh(t)
	address, _ := d.urls.Load(s)
	var links []link.Link
	for i := range 40 {
		l, err := s.Create(t.Context(), newLink(i+1, fmt.Sprintf("c%d", i)))
		if err != nil {
			t.Fatal(err)
		}
		links = append(links, l)
	}
	for range 5 {
		fill(t, s, links)
		exec(t, address.(string), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		var visits sync.WaitGroup
		for _, l := range links {
			visits.Go(func() {
				if _, err := s.Lookup(t.Context(), l.Key); err != nil {
					t.Error(err)
				}
			})
		}
		visits.Wait()
	}
	// Lists are whole, and no link is in one twice.
	exec(t, address.(string), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	if keys, _, err := s.Chosen(t.Context(), "", 100); err != nil || len(keys) != len(links) {
		t.Errorf("%d of %d links, %v", len(keys), len(links), err)
	}
}
