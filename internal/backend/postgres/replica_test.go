package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/internal/backend/postgres"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/cache"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/testkit"
)

// pair is a primary with a standby.
type pair struct {
	primary, standby *testkit.Postgres
	log              *slog.Logger // nil = discard
}

// open opens a store on a database, with the standby as its replica, and runs it.
func (p pair) open(t testing.TB, database string, lag time.Duration) *postgres.Links {
	t.Helper()
	s, err := postgres.OpenLinks(t.Context(), postgres.LinksConfig{
		URL: p.primary.URL(database), Replicas: []string{p.standby.URL(database)}, MaxLag: lag, Readers: 4, Log: p.log,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-ran; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) { // another process's
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// newPair starts a primary and a standby for whom it does not wait.
func newPair(t *testing.T) pair {
	t.Helper()
	p := pair{primary: testkit.StartPostgres(t, testkit.PostgresConfig{})}
	p.standby = testkit.StartStandby(t, p.primary)
	p.primary.Exec(t, "ALTER SYSTEM RESET synchronous_standby_names")
	p.primary.Exec(t, "SELECT pg_reload_conf()")
	return p
}

func TestReplica(t *testing.T) {
	p := newPair(t)
	t.Run("answers, and is never the last word", func(t *testing.T) { replicaAnswers(t, p) })
	t.Run("too far behind it is not asked", func(t *testing.T) { replicaBehind(t, p) })
	t.Run("is probed as a standby", func(t *testing.T) { replicaProbed(t, p) })
	t.Run("of another cluster it is not asked", func(t *testing.T) { foreignReplica(t, p) })
	t.Run("wrong replicas are refused", func(t *testing.T) { wrongReplicas(t, p) })
}

// TestReplicaConforms runs the whole suite, whose many databases each have to reach the standby.
func TestReplicaConforms(t *testing.T) {
	testkit.Faults(t)
	p := newPair(t)
	schema(t, p.primary)
	var names sync.Map
	h := linktest.Harness{Features: linktest.Declared(t, "../../../docs/backends.md", "postgres://… and CURT_LINKS_REPLICAS")}
	h.Features.ManyGetter = true
	h.Open = func(t testing.TB) link.Store {
		name := p.primary.Copy(t, template)
		s := p.open(t, name, h.Features.MaxLag)
		names.Store(s, name)
		await(t, "the replica answers", func() bool { return s.Replicas().Usable == 1 })
		return s
	}
	h.Again = func(t testing.TB, s link.Store) link.Store {
		name, _ := names.Load(s)
		return p.open(t, name.(string), h.Features.MaxLag)
	}
	linktest.Run(t, h)
}

func replicaAnswers(t *testing.T, p pair) {
	s := p.open(t, "curt", 2*time.Second)
	c, err := cache.New(cache.Config{Lag: 3 * time.Second}, s)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the replica answers", func() bool { return s.Replicas().Usable == 1 })
	// Many ask for what the replica does not know: the primary is asked once. On a busy machine
	// the replica may be late, and is not asked: then it is another code's turn.
	code := 0
	await(t, "a code that the replica does not know", func() bool {
		code++
		before := s.Replicas().Confirmed
		var asking sync.WaitGroup
		for range 50 {
			asking.Go(func() {
				if _, err := c.Lookup(t.Context(), link.Key{Code: link.Code(fmt.Sprint("unknown-", code))}); !errors.Is(err, link.ErrNotFound) {
					t.Errorf("an unknown code: %v", err)
				}
			})
		}
		asking.Wait()
		n := s.Replicas().Confirmed - before
		if n > 1 {
			t.Errorf("the primary was asked %d times", n)
		}
		return n > 0
	})
	// What was made a moment ago is there, whatever the replica knows.
	p.standby.Exec(t, "SELECT pg_wal_replay_pause()")
	defer p.standby.Exec(t, "SELECT pg_wal_replay_resume()")
	l, err := s.Create(t.Context(), newLink(1, "fresh"))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := c.Lookup(t.Context(), l.Key); err != nil || found.Version != 1 {
		t.Errorf("a new link: %+v, %v", found, err)
	}
}

// replicaBehind changes a link that a standby does not hear of.
func replicaBehind(t *testing.T, p pair) {
	told := &testkit.Lines{}
	p.log = slog.New(slog.NewTextHandler(told, nil))
	s := p.open(t, "curt", replicaLag)
	links := 0
	await(t, "a replica that lags", func() bool { // a busy one is late at once, and not asked
		links++
		return replicaLags(t, p, s, link.Code(fmt.Sprint("killed-", links)))
	})
	await(t, "how far it is behind is told", func() bool { return strings.Contains(told.String(), "behind=") })
	if text := told.String(); strings.Contains(text, "err=<nil>") {
		t.Errorf("a replica that lags is told as %s", text)
	}
	p.standby.Exec(t, "SELECT pg_wal_replay_resume()")
	await(t, "the replica answers again", func() bool { return s.Replicas().Usable == 1 })
}

const replicaLag = 1500 * time.Millisecond

// replicaLags reports whether the standby, which it leaves paused, answered with an older version.
func replicaLags(t *testing.T, p pair, s *postgres.Links, code link.Code) (stale bool) {
	t.Helper()
	p.standby.Exec(t, "SELECT pg_wal_replay_resume()")
	l, err := s.Create(t.Context(), newLink(2, string(code)))
	if err != nil {
		t.Fatal(err)
	}
	var well time.Time // when the replica was as near as it must be
	await(t, "the replica answers for the link", func() bool {
		before := s.Replicas().Answered
		well = time.Now()
		_, err := s.Lookup(t.Context(), l.Key)
		return err == nil && s.Replicas().Answered > before
	})
	failed := s.Replicas().Failed
	p.standby.Exec(t, "SELECT pg_wal_replay_pause()")
	p.standby.Exec(t, "DO $$ BEGIN WHILE pg_get_wal_replay_pause_state() <> 'paused' LOOP PERFORM pg_sleep(0.01); END LOOP; END $$")
	l.Status = link.Disabled
	killed, err := s.Replace(t.Context(), l, link.Edit{})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	// The cache heard of it: for as long as the replica may not know, it asks the primary.
	c, err := cache.New(cache.Config{Lag: replicaLag + time.Second}, s)
	if err != nil {
		t.Fatal(err)
	}
	c.Changed(link.Change{Key: l.Key, Version: killed.Version})
	for over := false; !over; {
		over = time.Since(at) > replicaLag
		asked := time.Now()
		found, err := s.Lookup(t.Context(), l.Key)
		if err != nil {
			t.Fatal(err)
		}
		if found.Version < killed.Version {
			stale = true
			if late := asked.Sub(at); late > replicaLag {
				t.Fatalf("the replica was asked %s after the change, and does not know it", late)
			}
		}
		if cached, err := c.Lookup(t.Context(), l.Key); err != nil || cached.Version < killed.Version {
			t.Fatalf("the cache answered with version %d, %v", cached.Version, err)
		}
	}
	if n := s.Replicas().Usable; n != 0 {
		t.Errorf("%d replicas count as usable", n)
	}
	r := s.Replicas() // one that failed counts as behind since the store was opened
	if len(r.Lags) != 1 || r.Lags[0] <= replicaLag || r.Failed == failed && r.Lags[0] > time.Since(well)+replicaLag {
		t.Errorf("the replica is behind by %s; %s ago it was not", r.Lags, time.Since(well))
	}
	return stale
}

func wrongReplicas(t *testing.T, p pair) {
	for _, wrong := range []string{"postgres://a,b/curt", "postgres://%zz"} {
		_, err := postgres.OpenLinks(t.Context(), postgres.LinksConfig{URL: p.primary.URL("curt"), Replicas: []string{wrong}})
		if !errors.Is(err, pgdb.ErrUnfit) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	// The primary is no standby: it is never asked in place of itself.
	s, err := postgres.OpenLinks(t.Context(), postgres.LinksConfig{URL: p.primary.URL("curt"), Replicas: []string{p.primary.URL("curt")}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	s.LookAtReplicas(t.Context())
	if n := s.Replicas().Usable; n != 0 {
		t.Errorf("%d replicas are usable", n)
	}
}
