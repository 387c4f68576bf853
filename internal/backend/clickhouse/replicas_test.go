package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"curt/internal/analytics"
	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/link"
	"curt/internal/testkit"
)

// placed opens a database as one of several.
func placed(t *testing.T, s *testkit.ClickHouse, database string, place int) (*clickhouse.Store, error) {
	t.Helper()
	store, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: s.URL(database), Position: place})
	if err == nil {
		t.Cleanup(func() { _ = store.Close() })
	}
	return store, err
}

// knowReplicas gives each database an identity of its own, which an emptied one loses; the one that was
// fed alone keeps the group that it had, as long as it is the first.
func knowReplicas(t *testing.T, s *testkit.ClickHouse) {
	alone, second := s.Database(t), s.Database(t)
	open(t, s, alone)
	first, err := placed(t, s, alone, 1)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := first.Replica(t.Context()); err != nil || r.ID != "" || r.Filling || r.Days != 0 || r.Gap.After(time.Unix(0, 0)) {
		t.Errorf("the first one is %+v, %v; want the plain identity, and complete", r, err)
	}
	if _, err := placed(t, s, alone, 2); !errors.Is(err, clickdb.ErrUnfit) {
		t.Errorf("the first one named second: %v", err)
	}
	fed := s.Database(t)
	open(t, s, fed)
	if _, err := placed(t, s, fed, 2); !errors.Is(err, clickdb.ErrUnfit) {
		t.Errorf("one that was fed alone named second: %v", err)
	}
	ids := map[string]bool{}
	for range 2 {
		errs := make(chan error)
		for range 4 { // at once
			go func() {
				store, err := clickhouse.Open(context.WithoutCancel(t.Context()), clickhouse.Config{URL: s.URL(second), Position: 2})
				if err == nil {
					err = store.Close()
				}
				errs <- err
			}()
		}
		for range 4 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		store, err := placed(t, s, second, 2)
		if err != nil {
			t.Fatal(err)
		}
		r, err := store.Replica(t.Context())
		if err != nil || r.ID == "" || !r.Filling || ids[r.ID] {
			t.Fatalf("a new one is %+v, %v", r, err)
		}
		ids[r.ID] = true
		if err := errors.Join(store.Is(t.Context(), r.ID), gaps(t, store)); err != nil {
			t.Error(err)
		}
		if r, err := store.Replica(t.Context()); err != nil || r.Filling || r.Days != 1 {
			t.Errorf("a filled one is %+v, %v", r, err)
		}
		s.Exec(t, "DROP DATABASE "+second+" SYNC")
		s.Exec(t, "CREATE DATABASE "+second+" ENGINE = Atomic")
		if err := store.Is(t.Context(), r.ID); !errors.Is(err, clickdb.ErrReplaced) {
			t.Errorf("an emptied one: %v", err)
		}
	}
}

// gaps fills a replica around two gaps: a refill closes those that it knew of.
func gaps(t *testing.T, store *clickhouse.Store) error {
	t.Helper()
	now := func() clickdb.Replica {
		r, err := store.Replica(t.Context())
		if err != nil {
			t.Error(err)
		}
		return r
	}
	errs := []error{store.RefilledDay(t.Context(), now().Gap, time.Now()), store.NoteGap(t.Context()), store.Refilled(t.Context(), time.Time{})}
	one := now()
	if !one.Filling || one.Days != 0 || !one.Gap.After(time.Unix(0, 0)) {
		t.Errorf("one that got a gap while it was filled is %+v", one)
	}
	errs = append(errs, store.Refilled(t.Context(), one.Gap))
	if r := now(); r.Filling {
		t.Errorf("one whose gap is closed is %+v", r)
	}
	errs = append(errs, store.NoteGap(t.Context()), store.RefilledDay(t.Context(), one.Gap, time.Now()), store.Refilled(t.Context(), one.Gap))
	two := now()
	if !two.Filling || two.Days != 0 || !two.Gap.After(one.Gap) {
		t.Errorf("one with another gap is %+v, before %+v", two, one)
	}
	return errors.Join(append(errs, store.RefilledDay(t.Context(), two.Gap, time.Now()), store.Refilled(t.Context(), two.Gap))...)
}

// refuseTwins has one database named twice, and a copy of it: both have one identity.
func refuseTwins(t *testing.T, s *testkit.ClickHouse) {
	database, other, peers := s.Database(t), s.Database(t), new(clickdb.Peers)
	at := func(host, database string, position int) error {
		url := strings.Replace(s.URL(database), "127.0.0.1", host, 1)
		store, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: url, Position: position, Peers: peers})
		if err == nil {
			err = store.Close()
		}
		return err
	}
	if err := errors.Join(at("127.0.0.1", database, 1), at("127.0.0.1", other, 2)); err != nil {
		t.Fatal(err)
	}
	err := at("localhost", database, 3)
	if !errors.Is(err, clickdb.ErrUnfit) || !strings.Contains(err.Error(), "is the same database as 127.0.0.1") {
		t.Errorf("a second name: %v", err)
	}
	if err := at("127.0.0.1", database, 1); err != nil {
		t.Errorf("the first name: %v", err)
	}
	s.Exec(t, "DROP DATABASE "+database+" SYNC")
	s.Exec(t, "CREATE DATABASE "+database+" ENGINE = Atomic")
	id := s.Exec(t, "SELECT comment FROM system.tables WHERE name = 'replica' AND database = '"+other+"'")
	s.Exec(t, "CREATE TABLE "+database+".replica (at DateTime64(6, 'UTC'), state LowCardinality(String), day DateTime('UTC')) ENGINE = MergeTree ORDER BY at COMMENT '"+id+"'")
	if err := at("127.0.0.1", database, 3); !errors.Is(err, clickdb.ErrUnfit) || !strings.Contains(err.Error(), "or a copy of its files") {
		t.Errorf("a copy: %v", err)
	}
}

// leaveAlone has a replica that was never filled named without the others: it answers nothing, before and
// after the server looked at it, until it is complete.
func leaveAlone(t *testing.T, s *testkit.ClickHouse) {
	database := s.Database(t)
	if _, err := placed(t, s, database, 2); err != nil {
		t.Fatal(err)
	}
	store, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: s.URL(database)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	now := time.Now().UTC()
	if err := store.Advance(t.Context(), []watermarks.Watermark{{Topic: "t", Partitions: 1, Watermark: now.UnixMilli()}}); err != nil {
		t.Fatal(err)
	}
	set := clickhouse.NewReplicas(store)
	refused := func(when string) {
		t.Helper()
		_, err := set.Clicks(t.Context(), []link.Key{{Code: "a"}})
		if !errors.Is(err, analytics.ErrIncomplete) || !errors.Is(err, analytics.ErrUnavailable) {
			t.Errorf("%s: %v", when, err)
		}
	}
	refused("before the server looked")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- set.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	await(t, "answer of the server", func() bool { return store.Healthy() == nil && !store.LastProgress().Complete.IsZero() })
	refused("after the server looked")
	if err := set.Healthy(); err == nil || !strings.Contains(err.Error(), store.Address()+": lacks clicks") {
		t.Errorf("health: %v", err)
	}
	if p := set.LastProgress(); !p.Complete.IsZero() || !p.Updated.IsZero() {
		t.Errorf("clicks are said to be complete until %v", p.Complete)
	}
	// What operations.md says where the others are lost for good.
	s.Exec(t, "INSERT INTO "+database+".replica VALUES (now(), 'filled', 0)")
	await(t, "end of the refusal", func() bool { return set.Healthy() == nil })
	if n, err := set.Clicks(t.Context(), []link.Key{{Code: "a"}}); err != nil || len(n) != 1 {
		t.Errorf("once it is complete: %v, %v", n, err)
	}
	if p := set.LastProgress(); p.Complete.IsZero() {
		t.Error("nothing is complete")
	}
}

// askReplicas has queries go to the replica that is complete up to the latest time, but not back and
// forth; to the other one when it fails; and to none that is filling.
func askReplicas(t *testing.T, s *testkit.ClickHouse) {
	now := time.Now()
	var all []*clickhouse.Store
	var databases []string
	for place := 1; place <= 2; place++ {
		databases = append(databases, s.Database(t))
		store, err := placed(t, s, databases[place-1], place)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, store)
	}
	set := clickhouse.NewReplicas(all...)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- set.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	asked := func() (by [2]uint64) {
		before := [2]uint64{all[0].Stats().Questions, all[1].Stats().Questions}
		if _, err := set.Clicks(t.Context(), []link.Key{{Code: "a"}}); err != nil {
			t.Error(err)
		}
		for i := range by {
			by[i] = all[i].Stats().Questions - before[i]
		}
		return by
	}
	complete := func(i int, at time.Time) {
		t.Helper()
		marks := []watermarks.Watermark{{Topic: "t", Partitions: 1, First: at.UnixMilli(), Watermark: at.UnixMilli(), LastContact: at.UnixMilli()}}
		if err := all[i].Advance(t.Context(), marks); err != nil {
			t.Fatal(err)
		}
		await(t, fmt.Sprint("progress of ", i+1), func() bool { return all[i].LastProgress().Complete.UnixMilli() == at.UnixMilli() })
	}
	complete(0, now.Add(-time.Hour))
	complete(1, now.Add(-time.Minute))
	if _, err := set.Clicks(t.Context(), nil); !errors.Is(err, analytics.ErrUnavailable) {
		t.Errorf("both are filling: %v", err)
	}
	if err := all[0].Refilled(t.Context(), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	await(t, "first replica", func() bool { return all[0].Able() == nil })
	if by := asked(); by[0] == 0 || by[1] != 0 {
		t.Errorf("one is complete, the other filling: %v", by)
	}
	if err := all[1].Refilled(t.Context(), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	await(t, "second replica", func() bool { return all[1].Able() == nil })
	if by := asked(); by[0] != 0 || by[1] == 0 {
		t.Errorf("the second is ahead by an hour: %v", by)
	}
	complete(0, now.Add(-55*time.Second))
	if by := asked(); by[0] != 0 || by[1] == 0 {
		t.Errorf("the first is ahead by five seconds: %v", by)
	}
	s.Exec(t, "DROP TABLE "+databases[1]+".days SYNC")
	if by := asked(); by[0] == 0 {
		t.Errorf("the second cannot answer: %v", by)
	}
}

// await waits for what Run notices.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %s within three minutes", what)
		}
	}
}
