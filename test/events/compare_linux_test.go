package events_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// settle waits until all that was clicked was brought on.
func (p *plant) settle(t *testing.T) {
	t.Helper()
	bound := 4 * time.Minute
	if curttest.Long() {
		bound = 10 * time.Minute
	}
	for _, s := range p.sites {
		within(t, bound, "empty click log", func() bool { return metric(t, s, "curt_events_waiting_bytes") == 0 })
	}
	for _, s := range p.sites {
		s.Terminate(t) // with the last clicks
	}
	p.arrive(t, bound)
	for _, s := range p.works {
		within(t, 3*time.Minute, "worker without lag", func() bool { p.keepStore(t); return metric(t, s, "curt_worker_lag_events") == 0 })
	}
}

// arrive waits until ClickHouse has as many clicks as the click logs have now.
func (p *plant) arrive(t *testing.T, bound time.Duration) {
	t.Helper()
	want, count := 0, 0
	for _, all := range p.logged(t) {
		want += len(all)
	}
	defer func() { t.Logf("%d of %d clicks", count, want) }()
	within(t, bound, "whole count", func() bool {
		p.keepStore(t)
		text, err := p.clickhouse.Ask(t.Context(), "SELECT uniqExact(instance, sequence) FROM "+p.database+".clicks")
		if err == nil {
			count, err = strconv.Atoi(text)
		}
		return err == nil && count >= want
	})
}

// compare looks whether ClickHouse has exactly what the click logs have, and whether all that
// was answered is there.
func (p *plant) compare(t *testing.T, answered int64) {
	t.Helper()
	want, hours := p.equal(t)
	// 120 ms of a site for each of its deaths; on a machine that is busy what it says itself, and who was on the way.
	const visitorsOfASite = 15
	if lost := answered + p.late - want; lost > max(want/50, p.killed+p.deaths*visitorsOfASite) {
		t.Errorf("%d answers, and %d clicks in the logs; killed servers lost %d", answered, want, p.killed)
	}
	store := p.store(t)
	within(t, 3*time.Minute, "end of every instance", func() bool {
		p.keepStore(t)
		progress, err := store.Progress(t.Context(), time.Now())
		return err == nil && !progress.Complete.IsZero() && progress.Instances == 0
	})
	again, repeated, sessions := p.worked(t)
	t.Logf("%d clicks of %d hours; of the last lives of workers: %.0f blocks again, %.0f clicks that Kafka had twice, %.0f sessions", want, hours, again, repeated, sessions)
}

// equal compares ClickHouse with the click logs, and what it added up with the clicks one by
// one. It returns how many clicks there should be, and of how many hours.
func (p *plant) equal(t *testing.T) (want int64, hours int) {
	t.Helper()
	logs := p.logged(t)
	byHour := map[time.Time]int{}
	var rows []string
	for _, instance := range slices.Sorted(maps.Keys(logs)) {
		all := map[uint64]bool{}
		sum := uint64(0)
		for _, e := range logs[instance] {
			if all[e.sequence] {
				t.Errorf("the click log has the event %d of the instance %d twice", e.sequence, instance)
			}
			all[e.sequence] = true
			sum += e.sequence
			byHour[time.UnixMilli(e.at).UTC().Truncate(time.Hour)]++
		}
		want += int64(len(all))
		rows = append(rows, fmt.Sprintf("%d\t%d\t%d\t%d", instance, len(all), len(all), sum))
	}
	p.same(t, "instance, events, distinct ones, sum of their sequences",
		"SELECT instance, count(), uniqExact(sequence), sum(sequence) FROM %s.clicks GROUP BY instance ORDER BY instance FORMAT TSV", rows)
	rows = nil
	for _, hour := range slices.SortedFunc(maps.Keys(byHour), time.Time.Compare) {
		rows = append(rows, fmt.Sprintf("%d\t%d", hour.Unix(), byHour[hour]))
	}
	p.same(t, "hour, events", "SELECT toUnixTimestamp(toStartOfHour(time)) AS hour, count() FROM %s.clicks GROUP BY hour ORDER BY hour FORMAT TSV", rows)
	p.verify(t, slices.Collect(maps.Keys(byHour)))
	return want, len(byHour)
}

// same compares an answer of ClickHouse with what it should be.
func (p *plant) same(t *testing.T, what, question string, rows []string) {
	t.Helper()
	if got, want := p.clickhouse.Exec(t, fmt.Sprintf(question, p.database)), strings.Join(rows, "\n"); got != want {
		t.Errorf("%s: ClickHouse has\n%s\nthe click logs\n%s", what, got, want)
	}
}

// verify adds up the days that are over, and compares all that was added up of the hours with
// the clicks one by one.
func (p *plant) verify(t *testing.T, hours []time.Time) {
	t.Helper()
	store, now := p.store(t), p.now()
	if _, err := store.FinalizeDays(t.Context(), now.Add(48*time.Hour)); err != nil {
		t.Error(err)
	}
	for _, hour := range hours {
		drifts, err := store.Verify(t.Context(), hour, now)
		if err != nil {
			t.Fatal(err)
		}
		settled := false
		for _, d := range drifts {
			settled = settled || d.Table == "day_values"
			if d.Rows > 0 || d.Off > 0 {
				t.Errorf("%v: %s: %d rows are off by %d events", hour, d.Table, d.Rows, d.Off)
			}
		}
		if !settled {
			t.Errorf("%v: the values of the day were not added up", hour)
		}
	}
}

// worked returns what workers counted, since they were killed last.
func (p *plant) worked(t *testing.T) (again, repeated, sessions float64) {
	t.Helper()
	for _, s := range p.works {
		again += metric(t, s, "curt_worker_blocks_again_total")
		repeated += metric(t, s, "curt_worker_repeated_total")
		sessions += metric(t, s, "curt_worker_sessions_total")
	}
	return again, repeated, sessions
}
