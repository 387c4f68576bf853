package events_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"curt/internal/testkit"
)

// TestHealing takes clicks of a complete hour and their sums away while workers run, kills the worker
// that heals them again and again, and expects every click to be counted once in the end.
func TestHealing(t *testing.T) {
	testkit.Faults(t)
	p := build(t, 1, 2, 1)
	v := p.visit(t.Context(), 4, time.Millisecond)
	within(t, 5*time.Minute, "visits", func() bool { return v.answered.Load() >= 2_000 })
	p.setClocks(t, time.Hour) // what was clicked is of a complete hour from here on
	before := v.answered.Load()
	within(t, 5*time.Minute, "visits of the next hour", func() bool { return v.answered.Load() >= before+500 })
	answered := v.end()
	p.settle(t)
	if counted, _ := p.equal(t); counted != answered {
		t.Fatalf("%d visits were answered, %d clicks counted", answered, counted)
	}
	p.site(t, t.TempDir()) // its watermarks follow, so that no click is in a last block
	within(t, 3*time.Minute, "first reconciliation", func() bool { return p.hours(t, "matches") > 0 })
	store := p.store(t)
	defer func() {
		if t.Failed() {
			progress, err := store.Progress(t.Context(), p.now())
			t.Logf("clicks are complete until %v, %v; the journal:\n%s", progress.Complete, err, p.clickhouse.Exec(t, "SELECT * FROM "+p.database+".reconciliations ORDER BY at FORMAT TSV"))
		}
	}()
	for try := 1; !p.healInterrupted(t, func() {
		within(t, 3*time.Minute, "complete hour", func() bool {
			progress, err := store.Progress(t.Context(), p.now())
			return err == nil && !progress.Complete.Before(p.now().Truncate(time.Hour))
		})
	}); try++ { // a fast worker has healed before it is killed
		if try == 10 {
			t.Fatal("no worker was killed while it healed: this shows nothing")
		}
	}
	if counted, _ := p.equal(t); counted != answered {
		t.Errorf("%d visits were answered, %d clicks counted after healing", answered, counted)
	}
}

// healInterrupted damages an hour, kills the worker twice once the hour is complete, and waits until it is healed. It reports
// whether the worker was killed while it healed.
func (p *plant) healInterrupted(t *testing.T, complete func()) (interrupted bool) {
	t.Helper()
	begun := func() int {
		return p.number(t, "SELECT count() FROM "+p.database+".reconciliations WHERE outcome = 'healing'")
	}
	kill := func() {
		data, s := p.any(p.works)
		s.Kill()
		within(t, 3*time.Minute, "the journal", func() bool {
			healing := p.hours(t, "healing")
			interrupted = interrupted || healing > 0
			return healing >= 0
		})
		delete(p.works, data)
		p.worker(t, data) // which begins with a reconciliation
	}
	p.reviveHouse(t)
	before := 0
	within(t, 3*time.Minute, "the journal", func() bool { before = begun(); return before >= 0 })
	p.clickhouse.Exec(t, "DELETE FROM "+p.database+".clicks WHERE sequence % 3 = 0 AND toStartOfHour(time) = (SELECT min(toStartOfHour(time)) FROM "+p.database+".clicks)")
	p.clickhouse.Exec(t, "INSERT INTO "+p.database+".quarters SELECT * FROM "+p.database+".quarters WHERE toStartOfHour(at) = (SELECT min(toStartOfHour(at)) FROM "+p.database+".quarters) LIMIT 5")
	complete()
	kill()
	within(t, 3*time.Minute, "healing", func() bool { return begun() > before })
	kill()
	within(t, 3*time.Minute, "healed hours", func() bool { return p.hours(t, "healed") > 0 && p.hours(t, "healing") == 0 })
	t.Logf("killed while it healed: %v", interrupted)
	return interrupted
}

// hours counts hours by the last outcome of each.
func (p *plant) hours(t *testing.T, outcome string) int {
	t.Helper()
	return p.number(t, fmt.Sprintf("SELECT count() FROM (SELECT outcome FROM %s.reconciliations ORDER BY hour, at DESC LIMIT 1 BY hour) WHERE outcome = '%s'", p.database, outcome))
}

// number asks ClickHouse for one; -1 = it ended and is started again.
func (p *plant) number(t *testing.T, question string) int {
	t.Helper()
	p.keepStore(t)
	text, err := p.clickhouse.Ask(t.Context(), question)
	if err != nil {
		t.Log(err)
		return -1
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
