package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/kafka"
	"curt/internal/clicks/clicklog"
	"curt/internal/testkit"
	"curt/internal/worker"
)

// archive is a day that is over, counted through Kafka into ClickHouse, and what came after.
type archive struct {
	server   *testkit.ClickHouse
	database string
	store    *clickhouse.Store
	kafka    kafka.Config
	day, now time.Time
	of       int // clicks of the day
}

const hourly = 200

// archived has clicks of four hours of yesterday counted, some of them sent again, and then some
// of today, so that nothing of yesterday is in a last block.
func archived(t *testing.T) *archive {
	t.Helper()
	today := time.Now().UTC().Truncate(24 * time.Hour)
	a := &archive{server: testkit.StartClickHouse(t), kafka: cluster(t, 3), day: today.Add(-24 * time.Hour), now: today.Add(12 * time.Hour)}
	a.database = a.server.Database(t)
	var err error
	if a.store, err = clickhouse.Open(t.Context(), clickhouse.Config{URL: a.server.URL(a.database)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.store.Close() })
	cfg := worker.Config{Kafka: a.kafka, Store: a.store, Workspaces: spaces}
	cfg.Age(30 * time.Millisecond)
	w, stop := start(t, cfg)
	s := newSite(t, a.kafka, 1)
	for hour := range 4 {
		n := 0
		s.when = func() time.Time {
			n++
			return a.day.Add(time.Duration(8+hour)*time.Hour + time.Duration(n)*time.Second)
		}
		s.click(t, hourly, hour == 2)
		a.of += hourly
		a.await(t, w, a.of)
	}
	s.when = func() time.Time { return today.Add(time.Minute) }
	s.click(t, hourly, false)
	a.await(t, w, a.of+hourly)
	stop()
	if n, err := a.store.FinalizeDays(t.Context(), a.now); err != nil || n != 1 {
		t.Fatalf("%d days were settled, %v", n, err)
	}
	return a
}

// await waits until the store has n clicks, and the worker nothing to do.
func (a *archive) await(t *testing.T, w *worker.Worker, n int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got := a.server.Exec(t, "SELECT count() FROM "+a.database+".clicks")
		if got == fmt.Sprint(n) && w.Stats().Lag == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v the store has %s clicks, want %d; %+v", patience, got, n, w.Stats())
		}
	}
}

// whole is all that the store has of the day, in the order of keys.
func (a *archive) whole(t *testing.T) string {
	t.Helper()
	in := "'" + a.day.Format(time.DateTime) + "'"
	var b strings.Builder
	for _, q := range []string{
		"SELECT 'clicks', count(), uniqExact(instance, sequence), sum(cityHash64(tuple(*))) FROM %[1]s.clicks WHERE toStartOfDay(time) = %[2]s",
		"SELECT 'minutes', * FROM (SELECT domain, code, at, sum(clicks), sum(humans), min(first_seen), max(last_clicked), uniqCombined64IfMerge(14)(visitors) FROM %[1]s.minutes WHERE toStartOfDay(at) = %[2]s GROUP BY ALL ORDER BY ALL)",
		"SELECT 'quarters', * FROM (SELECT domain, code, at, sum(clicks), sum(humans), min(first_seen), max(last_clicked), uniqCombined64IfMerge(14)(visitors) FROM %[1]s.quarters WHERE toStartOfDay(at) = %[2]s GROUP BY ALL ORDER BY ALL)",
		"SELECT 'days', * FROM (SELECT domain, code, at, sum(clicks), sum(humans), min(first_seen), max(last_clicked), uniqCombined64IfMerge(14)(visitors) FROM %[1]s.days WHERE toStartOfDay(at) = %[2]s GROUP BY ALL ORDER BY ALL)",
		"SELECT 'values', domain, code, dimension, value, clicks, humans FROM %[1]s.day_values WHERE at = %[2]s AND version = (SELECT max(version) FROM %[1]s.settled WHERE at = %[2]s) ORDER BY ALL",
	} {
		b.WriteString(a.server.Exec(t, fmt.Sprintf(q, a.database, in)) + "\n")
	}
	return b.String()
}

func (a *archive) compare(t *testing.T) (sum worker.Compared) {
	t.Helper()
	var done, of int64
	all, err := worker.Compare(t.Context(), worker.Comparison{
		Kafka: a.kafka, Store: a.store, From: a.day, To: a.day.Add(24 * time.Hour), Progress: func(n, all int64) { done, of = n, all },
	})
	if err != nil {
		t.Fatal(err)
	}
	if done != of || of == 0 {
		t.Errorf("%d of %d records were told of", done, of)
	}
	for _, c := range all {
		sum.Kafka, sum.Repeated, sum.Rows, sum.Apart = sum.Kafka+c.Kafka, sum.Repeated+c.Repeated, sum.Rows+c.Rows, sum.Apart+c.Apart
		sum.Earlier += c.Earlier
		sum.Missing, sum.Twice, sum.Extra = sum.Missing+c.Missing, sum.Twice+c.Twice, sum.Extra+c.Extra
	}
	return sum
}

// repeat repeats the day, or all of some partitions.
func (a *archive) repeat(t *testing.T, change func(*worker.Replay)) (worker.Replayed, error) {
	t.Helper()
	r := worker.Replay{Kafka: a.kafka, Store: a.store, Workspaces: spaces, From: a.day, To: a.day.Add(24 * time.Hour), Now: a.now}
	if change != nil {
		change(&r)
	}
	return worker.Repeat(t.Context(), r)
}

// must repeats and wants this much to be inserted, after which all is as it was.
func (a *archive) must(t *testing.T, inserted uint64, whole string, change func(*worker.Replay)) {
	t.Helper()
	done, err := a.repeat(t, change)
	if err != nil || done.Inserted != inserted || (inserted > 0) != (len(done.Days) > 0) {
		t.Errorf("%+v, %v; want %d inserted", done, err, inserted)
	}
	if got := a.whole(t); got != whole {
		t.Errorf("the day has %d characters, and had %d:\n%.300s\n%.300s", len(got), len(whole), got, whole)
	}
}

// TestReplay takes away what was counted, in the ways in which it may be lost, and brings it back.
func TestReplay(t *testing.T) {
	testkit.Unraced(t)
	a := archived(t)
	want := worker.Compared{Kafka: uint64(a.of), Rows: uint64(a.of)}
	got := a.compare(t)
	if want.Repeated = got.Repeated; got.Repeated == 0 || got != want {
		t.Fatalf("%+v, want %+v and something that was sent again", got, want)
	}
	whole := a.whole(t)

	a.must(t, 0, whole, nil)
	a.must(t, 0, whole, func(r *worker.Replay) { r.To, r.Partitions = a.now, []int32{1} }) // with what is of today

	// Rows are lost, and were counted.
	a.exec(t, "ALTER TABLE %s.clicks DELETE WHERE sequence %% 7 = 0 AND toHour(time) BETWEEN 9 AND 10 SETTINGS mutations_sync = 2")
	lost := uint64(a.of) - a.compare(t).Rows
	if got := a.compare(t); lost == 0 || got.Missing != lost || got.Wrong() != lost {
		t.Errorf("%d rows are lost: %+v", lost, got)
	}
	a.must(t, lost, whole, func(r *worker.Replay) { r.From, r.To = a.day.Add(9*time.Hour), a.day.Add(11*time.Hour) })

	// The day is lost, and was counted; and once more, while tables know the tokens.
	a.exec(t, "ALTER TABLE %s.clicks DROP PARTITION '"+a.day.Format("20060102")+"'")
	a.must(t, uint64(a.of), whole, nil)
	a.goesOn(t, whole)

	// The day is lost with all that was counted of it.
	for _, table := range []string{"clicks", "minutes", "quarters", "days"} {
		a.exec(t, "DELETE FROM %s."+table+" WHERE toStartOfDay("+map[bool]string{true: "time", false: "at"}[table == "clicks"]+") = '"+a.day.Format(time.DateTime)+"'")
	}
	a.must(t, uint64(a.of), whole, nil)

	// Rows that are too many are told, and are nobody's to bring.
	a.exec(t, "INSERT INTO %[1]s.clicks SELECT * FROM %[1]s.clicks WHERE toHour(time) = 10 AND toDate(time) = '"+a.day.Format(time.DateOnly)+"' LIMIT 5")
	a.exec(t, "INSERT INTO %[1]s.clicks SELECT * REPLACE(instance + 1 AS instance) FROM %[1]s.clicks WHERE toHour(time) = 11 LIMIT 3")
	if got := a.compare(t); got.Twice != 5 || got.Extra != 0 || got.Apart != 3 {
		t.Errorf("5 rows are there twice, 3 are of an instance that Kafka does not know: %+v", got)
	}
	a.inAnotherLife(t)
	a.inPart(t)
}

// inAnotherLife has some rows be of an earlier life of the topic, in which their instance wrote, too:
// they are no rows too many, and their day is one that Kafka may have in part.
func (a *archive) inAnotherLife(t *testing.T) {
	t.Helper()
	before := a.compare(t)
	a.exec(t, `INSERT INTO %[1]s.clicks SELECT * REPLACE(toUInt64(1) AS instance, toUInt64(3) AS sequence) FROM %[1]s.clicks WHERE toHour(time) = 8 LIMIT 1`)
	a.exec(t, `INSERT INTO %[1]s.clicks SELECT * REPLACE(instance AS instance, sequence + 1000000 AS sequence) FROM %[1]s.clicks WHERE toHour(time) = 8 AND instance != 1 LIMIT 1`)
	a.exec(t, "INSERT INTO %[1]s.watermarks (topic, partition, instance, partitions, first, watermark, heard, at) VALUES ('clicks/0', 0, 1, 3, 1, 1, 1, now())")
	if got := a.compare(t); got.Wrong() != before.Wrong() || got.Apart != before.Apart+2 || got.Earlier != 1 {
		t.Errorf("%+v, was %+v; want one row of an earlier life", got, before)
	}
	if _, err := a.repeat(t, nil); !errors.Is(err, worker.ErrReplay) {
		t.Errorf("a day of which an earlier life of the topic may have had some: %v", err)
	}
	a.exec(t, "ALTER TABLE %s.watermarks DELETE WHERE topic = 'clicks/0' SETTINGS mutations_sync = 2")
	a.exec(t, "ALTER TABLE %s.clicks DELETE WHERE instance = 1 OR sequence >= 1000000 SETTINGS mutations_sync = 2")
}

func (a *archive) exec(t *testing.T, statement string) {
	t.Helper()
	a.server.Exec(t, fmt.Sprintf(statement, a.database))
}

// inPart has Kafka give up some clicks of the day, of which rows are lost: what is added up of
// them is all that is left of both.
func (a *archive) inPart(t *testing.T) {
	t.Helper()
	a.exec(t, "ALTER TABLE %s.clicks DELETE WHERE toHour(time) = 11 AND toDate(time) = '"+a.day.Format(time.DateOnly)+"' SETTINGS mutations_sync = 2")
	left := a.whole(t)
	a.giveUp(t)
	for _, earliest := range []bool{false, true} {
		if _, err := a.repeat(t, func(r *worker.Replay) { r.Earliest = earliest }); !errors.Is(err, worker.ErrReplay) {
			t.Errorf("a day that Kafka has in part: %v", err)
		}
	}
	done, err := a.repeat(t, func(r *worker.Replay) { r.Earliest, r.To = true, a.now })
	if err != nil || !done.From.Equal(a.day.Add(24*time.Hour)) || done.Inserted != 0 || len(done.Days) != 0 {
		t.Errorf("from the first day that Kafka has: %+v, %v", done, err)
	}
	if got := a.whole(t); got != left {
		t.Errorf("something was taken away:\n%.300s\nof\n%.300s", got, left)
	}
	a.drift(t, true)
	done, err = a.repeat(t, func(r *worker.Replay) { r.Reduce = true })
	if err != nil || done.Inserted == 0 || done.Inserted >= hourly || len(done.Days) != 1 {
		t.Errorf("what there is of the day: %+v, %v", done, err)
	}
	a.drift(t, false)
}

// giveUp has Kafka give up each partition up to the middle of the day's last hour.
func (a *archive) giveUp(t *testing.T) {
	t.Helper()
	topic, err := kafka.OpenReread(t.Context(), a.kafka)
	if err != nil {
		t.Fatal(err)
	}
	defer topic.Close()
	passed, err := topic.Passed(t.Context(), a.kafka.Topic, a.day)
	if err != nil {
		t.Fatal(err)
	}
	middle := map[int32]int64{}
	for _, q := range passed {
		var last []int64
		err := topic.Read(t.Context(), q.Partition, q.Low, q.Committed, func(r *kgo.Record) error {
			var e clicklog.Event
			if p, err := kafka.ReadRecord(r.Value, &e); p == nil && err == nil && !e.When().Before(a.day.Add(11*time.Hour)) && e.When().Before(a.day.Add(12*time.Hour)) {
				last = append(last, r.Offset)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		middle[q.Partition] = last[len(last)/2]
	}
	testkit.DeleteRecords(t, a.kafka.Brokers, a.kafka.Topic, func(partition int32, _ int64) int64 { return middle[partition] })
}

// drift looks whether more is added up than there is one by one, or whether all is right.
func (a *archive) drift(t *testing.T, more bool) {
	t.Helper()
	all, err := a.store.VerifyDay(t.Context(), a.day, a.now)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		if (d.Rows > 0) != more || d.Table == "days" && (d.More > 0) != more {
			t.Errorf("%+v, want more: %v", d, more)
		}
	}
}

// goesOn stops a replay after each of its steps, and goes on with what it saved.
func (a *archive) goesOn(t *testing.T, whole string) {
	t.Helper()
	a.exec(t, "ALTER TABLE %s.clicks DROP PARTITION '"+a.day.Format("20060102")+"'")
	stopped := errors.New("stopped")
	var state *worker.ReplayState
	steps := 0
	for {
		fresh := true
		_, err := a.repeat(t, func(r *worker.Replay) {
			r.State = state
			r.Save = func(s *worker.ReplayState) error {
				kept := *s
				kept.Days = append([]time.Time(nil), s.Days...)
				state = &kept
				if steps++; fresh {
					fresh = false
					return nil
				}
				return stopped
			}
		})
		if err == nil {
			break
		}
		if !errors.Is(err, stopped) || steps > 100 {
			t.Fatal(err)
		}
	}
	if steps < 5 {
		t.Errorf("it was done after %d steps", steps)
	}
	a.must(t, 0, whole, nil)
	other := *state
	other.From = other.From.Add(time.Hour)
	if _, err := a.repeat(t, func(r *worker.Replay) { r.State = &other }); !errors.Is(err, worker.ErrReplay) {
		t.Errorf("with the state of another: %v", err)
	}
	for _, number := range []int32{-1, 3} {
		if _, err := a.repeat(t, func(r *worker.Replay) { r.Partitions = []int32{1, number} }); !errors.Is(err, worker.ErrReplay) {
			t.Errorf("of the partition %d: %v", number, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := worker.Repeat(ctx, worker.Replay{Kafka: a.kafka, Store: a.store, From: a.day, To: a.now, Now: a.now}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
