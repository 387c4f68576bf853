package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/reconcile"
	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/clicks/rollup"
	"curt/internal/testkit"
	"curt/internal/worker"
	"curt/internal/worker/heal"
)

// errStopped stands for the death of the process.
var errStopped = errors.New("stopped")

// stopping is a store whose clicks are complete, and that dies before or after its nth write.
type stopping struct {
	*clickhouse.Store

	complete time.Time
	at       int // 0 = never
	writes   int
	die      context.CancelFunc
}

func (s *stopping) Progress(context.Context, time.Time) (watermarks.Progress, error) {
	return watermarks.Progress{Freshness: rollup.Freshness{Complete: s.complete, Updated: s.complete}}, nil
}

// stop has nothing done from then on.
func (s *stopping) stop() error {
	s.die()
	return errStopped
}

func (s *stopping) write(f func() error) error {
	if s.writes++; s.at > 0 && s.writes >= s.at {
		return s.stop()
	}
	if err := f(); err != nil {
		return err
	}
	if s.writes++; s.at > 0 && s.writes >= s.at {
		return s.stop()
	}
	return nil
}

func (s *stopping) Insert(ctx context.Context, token string, rows []clickdb.Row) error {
	return s.write(func() error { return s.Store.Insert(ctx, token, rows) })
}

func (s *stopping) RebuildDay(ctx context.Context, day, now time.Time) error {
	return s.write(func() error { return s.Store.RebuildDay(ctx, day, now) })
}

func (s *stopping) RebuildOpen(ctx context.Context, day, complete, now time.Time, wait func(context.Context) error) error {
	return s.write(func() error { return s.Store.RebuildOpen(ctx, day, complete, now, wait) })
}

func (s *stopping) Journal(ctx context.Context, entries []reconcile.Entry) error {
	return s.write(func() error { return s.Store.Journal(ctx, entries) })
}

// refusing is a store whose sums nobody can correct.
type refusing struct {
	stopping

	tried int
}

func (s *refusing) RebuildDay(context.Context, time.Time, time.Time) error {
	s.tried++
	return errors.New("refused")
}

func (s *refusing) RebuildOpen(context.Context, time.Time, time.Time, time.Time, func(context.Context) error) error {
	s.tried++
	return errors.New("refused")
}

// heal reconciles once.
func (a *archive) heal(t *testing.T, s heal.Store) (heal.Report, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if dying, is := s.(*stopping); is {
		dying.die = cancel
	}
	begun := time.Now()
	defer func() { a.now = a.now.Add(time.Since(begun)) }()
	return heal.Once(ctx, heal.Config{
		Replay: worker.Replay{Kafka: a.kafka, Workspaces: spaces}, Store: s,
		Clock: func() time.Time { return a.now.Add(time.Since(begun)) },
		Sleep: func(context.Context, time.Duration) bool { return true },
	})
}

// after has clicks counted of a time that is not complete: the last blocks are theirs.
func (a *archive) after(t *testing.T) {
	t.Helper()
	cfg := worker.Config{Kafka: a.kafka, Store: a.store, Workspaces: spaces}
	cfg.Age(30 * time.Millisecond)
	w, stop := start(t, cfg)
	s := newSite(t, a.kafka, 2)
	s.when = func() time.Time { return a.now.Add(time.Hour) }
	s.click(t, hourly, false)
	a.await(t, w, a.of+2*hourly)
	stop()
}

// both is all that the store has of yesterday and today.
func (a *archive) both(t *testing.T) string {
	t.Helper()
	yesterday, today := *a, *a
	today.day = a.day.Add(24 * time.Hour)
	return yesterday.whole(t) + today.whole(t)
}

// TestHealing damages clicks and sums of yesterday and today, in each way, and has them healed.
func TestHealing(t *testing.T) {
	testkit.Unraced(t)
	a := archived(t)
	a.after(t)
	open := &stopping{Store: a.store, complete: a.now}
	want := a.both(t)
	r, err := a.heal(t, open)
	if err != nil || r.Clicks != uint64(a.of+hourly) || r.Wrong != 0 || r.Off != 0 || r.Healed != 0 || open.writes == 0 {
		t.Fatalf("%+v, %v; want %d clicks and nothing wrong", r, err, a.of+hourly)
	}
	open.writes = 0
	if r, err = a.heal(t, open); err != nil || open.writes != 0 || r.Clicks != uint64(a.of+hourly) {
		t.Errorf("the second time: %+v, %v, %d writes", r, err, open.writes)
	}
	today := a.day.Add(24 * time.Hour).Format(time.DateTime)
	for name, damage := range map[string]string{
		"rows of two hours of yesterday are gone":     "DELETE FROM DB.clicks WHERE toHour(time) IN (9, 10)",
		"a day's rows are gone":                       "ALTER TABLE DB.clicks DROP PARTITION '" + a.day.Format("20060102") + "'",
		"today's rows are gone":                       "DELETE FROM DB.clicks WHERE time >= '" + today + "' AND toHour(time) = 0 AND sequence % 3 = 0",
		"quarters of yesterday and today count twice": "INSERT INTO DB.quarters SELECT * FROM DB.quarters WHERE toHour(at) != 13 LIMIT 1 BY at",
		"minutes are gone":                            "DELETE FROM DB.minutes WHERE toHour(at) != 13",
		"days count twice":                            "INSERT INTO DB.days SELECT * FROM DB.days WHERE at < '" + today + "' LIMIT 3",
		"rows and sums are gone":                      rowsAndSums,
	} {
		t.Run(name, func(t *testing.T) { a.healed(t, damage, 0, want) })
	}
	a.givesUp(t, want)
}

// rowsAndSums damages what takes the most writes to heal.
const rowsAndSums = "DELETE FROM DB.clicks WHERE toHour(time) = 9; DELETE FROM DB.quarters WHERE toHour(at) = 9"

// TestHealingIsStoppedAtEachWrite has a run die before or after each of its writes.
func TestHealingIsStoppedAtEachWrite(t *testing.T) {
	testkit.Faults(t)
	a := archived(t)
	a.after(t)
	want := a.both(t)
	writes := a.healed(t, rowsAndSums, 0, want)
	for at := 1; at <= writes; at++ {
		a.healed(t, rowsAndSums, at, want)
	}
}

// healed damages the store and has it healed by a run that stops at a write, 0 = at none, and then by
// another one. It returns how many writes the first run made.
func (a *archive) healed(t *testing.T, damage string, at int, want string) int {
	t.Helper()
	a.damage(t, damage)
	s := &stopping{Store: a.store, complete: a.now, at: at}
	if _, err := a.heal(t, s); err != nil && !errors.Is(err, errStopped) && !errors.Is(err, context.Canceled) || (err == nil) != (at == 0) {
		t.Fatalf("stopped at write %d: %v", at, err)
	}
	r, err := a.heal(t, &stopping{Store: a.store, complete: a.now})
	if err != nil || r.Wrong != 0 || r.Off != 0 || r.GivenUp != 0 {
		t.Fatalf("stopped at write %d: %+v, %v", at, r, err)
	}
	if got := a.both(t); got != want {
		t.Fatalf("stopped at write %d (-want +got):\n%s", at, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
	}
	return s.writes
}

func (a *archive) damage(t *testing.T, statements string) {
	t.Helper()
	for s := range strings.SplitSeq(statements, "; ") {
		a.server.Exec(t, strings.ReplaceAll(s, "DB", a.database))
	}
}

// givesUp has what cannot be corrected tried a bounded number of times, and journalled.
func (a *archive) givesUp(t *testing.T, want string) {
	a.damage(t, "INSERT INTO DB.quarters SELECT * FROM DB.quarters WHERE toHour(at) != 13 LIMIT 1 BY at")
	var r heal.Report
	for try := range heal.MaxAttempts + 2 {
		s := &refusing{stopping{Store: a.store, complete: a.now}, 0}
		var err error
		if r, err = a.heal(t, s); err != nil {
			t.Fatal(err)
		}
		if tried := s.tried > 0; tried != (try < heal.MaxAttempts) {
			t.Errorf("attempt %d was made: %v", try+1, tried)
		}
	}
	if r.GivenUp == 0 || r.Off == 0 {
		t.Errorf("%+v, want hours that are left to an operator", r)
	}
	if n := a.server.Exec(t, "SELECT count() > 0 FROM "+a.database+".reconciliations WHERE outcome = 'differs' AND attempt = 3 AND reason LIKE '%refused%'"); n != "1" {
		t.Error("the journal does not have why")
	}
	// An operator's correction is seen at the next run.
	for _, day := range []time.Time{a.day, a.day.Add(24 * time.Hour)} {
		if err := a.store.RebuildDay(t.Context(), day, a.now); err != nil {
			t.Fatal(err)
		}
	}
	r, err := a.heal(t, &stopping{Store: a.store, complete: a.now})
	if err != nil || r.Off != 0 || r.GivenUp != 0 || a.both(t) != want {
		t.Errorf("after the correction: %+v, %v", r, err)
	}
}
