package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/finalize"
	"curt/internal/backend/clickhouse/reconcile"
	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/testkit"
	"curt/internal/worker"
	"curt/internal/worker/refill"
)

// identified is a store with the group of its replica, as workers use it.
type identified struct{ *clickhouse.Store }

// Identify implements worker.Identified.
func (s identified) Identify(ctx context.Context) (string, error) {
	r, err := s.Replica(ctx)
	return r.ID, err
}

// second opens an empty replica beside the archive's store, which was fed alone.
func (a *archive) second(t *testing.T) (store *clickhouse.Store, database string) {
	t.Helper()
	database = a.server.Database(t)
	store, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: a.server.URL(database), Position: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store, database
}

// dying is a replica whose refill dies before or after its nth write.
type dying struct {
	*clickhouse.Store

	at, writes int
}

func (d *dying) write(f func() error) error {
	if d.writes++; d.writes == d.at {
		return errStopped
	}
	err := f()
	if d.writes++; d.writes == d.at && err == nil {
		return errStopped
	}
	return err
}

func (d *dying) Insert(ctx context.Context, token string, rows []clickdb.Row) error {
	return d.write(func() error { return d.Store.Insert(ctx, token, rows) })
}

func (d *dying) AdoptSums(ctx context.Context, batch string, day time.Time) error {
	return d.write(func() error { return d.Store.AdoptSums(ctx, batch, day) })
}

func (d *dying) AdoptValues(ctx context.Context, source *reconcile.Tables, day, now time.Time) error {
	return d.write(func() error { return d.Store.AdoptValues(ctx, source, day, now) })
}

func (d *dying) RefilledDay(ctx context.Context, gap, day time.Time) error {
	return d.write(func() error { return d.Store.RefilledDay(ctx, gap, day) })
}

func (d *dying) Refilled(ctx context.Context, gap time.Time) error {
	return d.write(func() error { return d.Store.Refilled(ctx, gap) })
}

// sumsOf is everything that a database has, so that two replicas can be compared.
func (a *archive) sumsOf(t *testing.T, database string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(a.server.Exec(t, "SELECT count(), uniqExact(instance, sequence), sum(cityHash64(tuple(*))) FROM "+database+".clicks WHERE toDate(time) >= '"+a.day.Format(time.DateOnly)+"'"))
	for _, table := range []string{"quarters", "days"} {
		fmt.Fprintf(&b, "\n%s\n%s", table, a.server.Exec(t, "SELECT domain, code, at, sum(clicks) AS n, sum(humans), sum(previews), min(first_seen), max(last_clicked), uniqCombined64IfMerge(14)(visitors) FROM "+
			database+"."+table+" GROUP BY ALL HAVING n != 0 ORDER BY ALL"))
	}
	b.WriteString(a.server.Exec(t, "SELECT domain, code, dimension, value, clicks, humans FROM "+database+".day_values WHERE (at, version) IN (SELECT at, max(version) FROM "+database+".settled GROUP BY at) ORDER BY ALL"))
	return b.String()
}

// TestRefill has a new replica fed from what Kafka still has, and filled from the other one while its
// worker runs. The refill dies at each of its writes once. A day whose clicks are no longer kept has
// its sums copied.
func TestRefill(t *testing.T) {
	testkit.Faults(t)
	a := archived(t)
	a.server.Exec(t, "SYSTEM STOP TTL MERGES")
	old := a.day.Add(-60 * day)
	a.exec(t, "INSERT INTO %[1]s.clicks SELECT * REPLACE(time - toIntervalDay(60) AS time, instance + 7 AS instance) FROM (SELECT * FROM %[1]s.clicks WHERE toDate(time) = '"+a.day.Format(time.DateOnly)+"')")
	if err := a.store.FinalizeDay(t.Context(), old, finalize.Day{Clicks: uint64(a.of)}, a.now); err != nil {
		t.Fatal(err)
	}
	a.exec(t, "ALTER TABLE %s.clicks DELETE WHERE toDate(time) = '"+old.Format(time.DateOnly)+"' AND sequence %% 2 = 0 SETTINGS mutations_sync = 2")
	testkit.DeleteRecords(t, a.kafka.Brokers, a.kafka.Topic, testkit.Half)
	whole := a.sumsOf(t, a.database)

	target, database := a.second(t)
	r, err := target.Replica(t.Context())
	if err != nil || r.ID == "" || !r.Filling {
		t.Fatalf("the replica is %+v, %v; want a new one that is filling", r, err)
	}
	cfg := worker.Config{Kafka: a.kafka, Store: identified{target}, Workspaces: spaces}
	cfg.Age(30 * time.Millisecond)
	w, stop := start(t, cfg)
	defer stop()
	fill := func(target refill.Target) error {
		_, err := refill.All(t.Context(), refill.Config{
			Kafka: a.kafka, Group: worker.GroupOf(a.kafka.Topic, r.ID), Source: a.store, Target: target, Retention: 30 * day, Inserted: w.Inserted, Now: a.now,
			Sleep: func(context.Context, time.Duration) bool { time.Sleep(time.Millisecond); return true },
		})
		return err
	}
	deaths := 0
	for at := 1; deaths < 100; at = at%8 + 1 { // eight writes record a day
		err := fill(&dying{Store: target, at: at})
		if err == nil {
			break
		}
		if !errors.Is(err, errStopped) {
			t.Fatal(err)
		}
		deaths++
	}
	if err := fill(target); err != nil {
		t.Fatal(err)
	}
	if n, err := target.FinalizeDays(t.Context(), a.now); err != nil {
		t.Fatalf("%d days were finalized, %v", n, err)
	}
	if deaths < 5 {
		t.Errorf("it died %d times", deaths)
	}
	if got := a.sumsOf(t, database); got != whole {
		t.Errorf("after %d deaths the replicas differ:\n%.600s\n\n%.600s", deaths, whole, got)
	}
	if r, err = target.Replica(t.Context()); err != nil || r.Filling {
		t.Errorf("the replica is %+v, %v", r, err)
	}
}

// TestRefillOfAGap has a replica away while Kafka gives up records that the other one has read. It counts as
// filling before it has read anything behind them, and until it has everything; a source that has a gap of its own
// gives nothing.
func TestRefillOfAGap(t *testing.T) {
	testkit.Faults(t)
	a := archived(t)
	target, database := a.second(t)
	r, err := target.Replica(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg := worker.Config{Kafka: a.kafka, Store: identified{target}, Workspaces: spaces}
	cfg.Age(30 * time.Millisecond)
	w, stop := start(t, cfg)
	fill := refill.Config{
		Kafka: a.kafka, Group: worker.GroupOf(a.kafka.Topic, r.ID), Source: a.store, Target: target, Retention: 30 * day, Inserted: w.Inserted, Now: a.now,
		Sleep: func(context.Context, time.Duration) bool { time.Sleep(time.Millisecond); return true },
	}
	if complete, err := refill.FromKafka(t.Context(), fill); err != nil || !complete {
		t.Fatalf("complete is %v, %v", complete, err)
	}
	stop()

	s := newSite(t, a.kafka, 2)
	s.when = func() time.Time { return a.day.Add(26 * time.Hour) }
	s.click(t, hourly, false)
	testkit.DeleteRecords(t, a.kafka.Brokers, a.kafka.Topic, testkit.All)
	s.click(t, hourly, false)
	if r, err = target.Replica(t.Context()); err != nil || r.Filling {
		t.Fatalf("before its worker is there the replica is %+v, %v", r, err)
	}
	if _, err := refill.All(t.Context(), fill); !errors.Is(err, refill.ErrSourceLacks) {
		t.Errorf("a refill from a source with a gap: %v", err)
	}
	a.server.Exec(t, "INSERT INTO "+a.database+".clicks SELECT * REPLACE(instance + 7 AS instance) FROM "+a.database+".clicks WHERE toDate(time) > '"+a.day.Format(time.DateOnly)+"'") // as if it had read them
	own := cfg
	own.Store = a.store
	_, stop = start(t, own)
	defer stop()
	w, stop = start(t, cfg)
	defer stop()
	fill.Inserted = w.Inserted
	for end := time.Now().Add(patience); !r.Filling; time.Sleep(time.Millisecond) {
		rows := a.server.Exec(t, "SELECT count() FROM "+database+".clicks")
		if r, err = target.Replica(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint(a.of + hourly); !r.Filling && (rows != want || time.Now().After(end)) {
			t.Fatalf("the replica is %+v; before that it had %s clicks, want %s until it counts as filling", r, rows, want)
		}
	}
	deaths := 0
	for at := 1; r.Filling; at++ {
		if r, err = target.Replica(t.Context()); err != nil { // each partition has a gap
			t.Fatal(err)
		}
		c := fill
		c.Gap, c.Target = r.Gap, &dying{Store: target, at: at}
		done, err := refill.All(t.Context(), c)
		if err == nil {
			if done.Days > 1 {
				t.Errorf("%d days were filled, one differed", done.Days)
			}
			if r, err = target.Replica(t.Context()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		switch {
		case errors.Is(err, refill.ErrSourceLacks): // its first block begins before the gap, as far as anybody knows
			s.click(t, 3, false)
			at--
		case !errors.Is(err, errStopped):
			t.Fatal(err)
		default:
			deaths++
		}
	}
	if r, err = target.Replica(t.Context()); err != nil || r.Filling {
		t.Errorf("after the refill the replica is %+v, %v", r, err)
	}
	if n, err := target.FinalizeDays(t.Context(), a.now); err != nil {
		t.Fatalf("%d days were finalized, %v", n, err)
	}
	if got, whole := a.sumsOf(t, database), a.sumsOf(t, a.database); got != whole {
		t.Errorf("after %d deaths the replicas differ:\n%.600s\n\n%.600s", deaths, whole, got)
	}
}

// TestFillFromKafka has new replicas fed without another one. One that got all that Kafka ever had is
// complete; one that may lack something is not.
func TestFillFromKafka(t *testing.T) {
	testkit.Faults(t)
	a := archived(t)
	whole := a.sumsOf(t, a.database)
	for _, c := range []struct {
		name     string
		complete bool
		change   func(t *testing.T, target *clickhouse.Store)
	}{
		{"everything is in Kafka", true, func(*testing.T, *clickhouse.Store) {}},
		{"a refill has begun", false, func(t *testing.T, target *clickhouse.Store) {
			t.Helper()
			if err := target.RefilledDay(t.Context(), time.Unix(0, 0), a.day); err != nil {
				t.Fatal(err)
			}
		}},
		{"the topic was created again", false, func(t *testing.T, target *clickhouse.Store) {
			t.Helper()
			if err := target.Advance(t.Context(), []watermarks.Watermark{{Topic: a.kafka.Topic + "/00", Partitions: 1, Watermark: 1}}); err != nil {
				t.Fatal(err)
			}
		}},
		{"Kafka gave up records", false, func(t *testing.T, _ *clickhouse.Store) {
			t.Helper()
			testkit.DeleteRecords(t, a.kafka.Brokers, a.kafka.Topic, testkit.Half)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			target, database := a.second(t)
			c.change(t, target)
			r, err := target.Replica(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			cfg := worker.Config{Kafka: a.kafka, Store: identified{target}, Workspaces: spaces}
			cfg.Age(30 * time.Millisecond)
			w, stop := start(t, cfg)
			defer stop()
			complete, err := refill.FromKafka(t.Context(), refill.Config{
				Kafka: a.kafka, Group: worker.GroupOf(a.kafka.Topic, r.ID), Target: target, Retention: 30 * day, Inserted: w.Inserted, Now: a.now,
				Sleep: func(context.Context, time.Duration) bool { time.Sleep(time.Millisecond); return true },
			})
			if err != nil || complete != c.complete {
				t.Errorf("complete is %v, %v; want %v", complete, err, c.complete)
			}
			if r, err = target.Replica(t.Context()); err != nil || r.Filling == c.complete {
				t.Errorf("the replica is %+v, %v", r, err)
			}
			if n, err := target.FinalizeDays(t.Context(), a.now); err != nil {
				t.Fatalf("%d days were finalized, %v", n, err)
			}
			if got := a.sumsOf(t, database); complete && got != whole {
				t.Errorf("the replicas differ:\n%.600s\n\n%.600s", whole, got)
			}
		})
	}
}

// TestFillFromEmptyKafka: where nobody has clicked, there is nothing to wait for.
func TestFillFromEmptyKafka(t *testing.T) {
	testkit.Faults(t)
	server, topic := testkit.StartClickHouse(t), cluster(t, 3)
	target, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: server.URL(server.Database(t)), Position: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = target.Close() }()
	complete, err := refill.FromKafka(t.Context(), refill.Config{
		Kafka: topic, Group: "nobody", Target: target, Now: time.Now(),
		Sleep: func(context.Context, time.Duration) bool { t.Fatal("it waits"); return false },
	})
	if err != nil || !complete {
		t.Errorf("complete is %v, %v", complete, err)
	}
}

const day = 24 * time.Hour
