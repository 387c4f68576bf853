package clickhouse_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
	"curt/internal/testkit"
)

// TestProgress adds up what is known of a topic with two partitions. Times are seconds.
func TestProgress(t *testing.T) {
	type mark struct {
		partition               uint32
		instance                uint64
		first, watermark, heard int64
	}
	const ended = -1
	for name, test := range map[string]struct {
		marks             []mark
		updated, complete int64
		instances         int
		gone              []uint64
	}{
		"nothing":                         {},
		"a partition that nobody reads":   {marks: []mark{{0, 0, 100, 100, 100}, {0, 7, 1, 90, 99}}},
		"the least promise":               {marks: []mark{{0, 0, 0, 100, 0}, {1, 0, 0, 101, 0}, {0, 7, 1, 90, 99}, {1, 7, 1, 91, 99}, {0, 8, 1, 80, 99}, {1, 8, 1, 95, 99}}, updated: 100, complete: 80, instances: 2},
		"nobody lives":                    {marks: []mark{{0, 0, 0, 100, 0}, {1, 0, 0, 101, 0}, {0, 7, 1, ended, 50}, {1, 7, 1, ended, 50}}, updated: 100, complete: 100},
		"one that ended in one partition": {marks: []mark{{0, 0, 0, 100, 0}, {1, 0, 0, 60, 0}, {0, 7, 1, ended, 99}, {1, 7, 1, 55, 60}}, updated: 60, complete: 55, instances: 1},
		"not heard of everywhere yet":     {marks: []mark{{0, 0, 0, 100, 0}, {1, 0, 0, 100, 0}, {0, 7, 70, 90, 99}}, updated: 100, complete: 70, instances: 1},
		"silent":                          {marks: []mark{{0, 0, 0, 699, 0}, {1, 0, 0, 699, 0}, {0, 7, 1, 90, 100}, {1, 7, 1, 90, 100}}, updated: 699, complete: 90, instances: 1},
		"gone":                            {marks: []mark{{0, 0, 0, 700, 0}, {1, 0, 0, 700, 0}, {0, 7, 1, 90, 100}, {1, 7, 1, 90, 100}, {0, 8, 1, 650, 700}, {1, 8, 1, 650, 700}}, updated: 700, complete: 650, instances: 2, gone: []uint64{7}},
		"a partition that is not read":    {marks: []mark{{0, 0, 0, 9000, 0}, {1, 0, 0, 120, 0}, {0, 7, 1, 8990, 9000}, {1, 7, 1, 110, 119}}, updated: 120, complete: 110, instances: 1},
	} {
		marks := make([]watermarks.Watermark, len(test.marks))
		for i, m := range test.marks {
			until := m.watermark * 1000
			if m.watermark == ended {
				until = clicks.Ended
			}
			marks[i] = watermarks.Watermark{Topic: "t", Partition: m.partition, Partitions: 2, Instance: m.instance, First: m.first * 1000, Watermark: until, LastContact: m.heard * 1000}
		}
		want := watermarks.Progress{Instances: test.instances, Gone: test.gone}
		if test.updated > 0 {
			want.Updated, want.Complete = time.Unix(test.updated, 0).UTC(), time.Unix(test.complete, 0).UTC()
		}
		if d := cmp.Diff(want, watermarks.ProgressOf(marks, "t", nil, time.UnixMilli(clicks.Ended-1))); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// keepWatermarks tells things in an order that is not theirs, and asks.
func keepWatermarks(t *testing.T, s *testkit.ClickHouse) {
	store := open(t, s, s.Database(t))
	now := time.Now().Truncate(time.Millisecond).UTC()
	if p, err := store.Progress(t.Context(), now); err != nil || p.Instances != 0 || !p.Complete.IsZero() {
		t.Fatalf("of nothing: %+v, %v", p, err)
	}
	at := func(d time.Duration) int64 { return now.Add(d).UnixMilli() }
	for _, marks := range [][]watermarks.Watermark{
		nil,
		{{Topic: "t", Partitions: 1, First: at(0), Watermark: at(0), LastContact: at(0)}, {Topic: "t", Partitions: 1, Instance: 7, First: at(-time.Hour), Watermark: at(-time.Second), LastContact: at(0)}},
		{{Topic: "t", Partitions: 1, Instance: 7, First: at(-time.Minute), Watermark: at(-time.Minute), LastContact: at(-time.Minute)}},
	} {
		if err := store.Advance(t.Context(), marks); err != nil {
			t.Fatal(err)
		}
	}
	p, err := store.Progress(t.Context(), now.Add(time.Minute))
	want := watermarks.Progress{Freshness: rollup.Freshness{Updated: now, Complete: now.Add(-time.Second)}, Instances: 1}
	if d := cmp.Diff(want, p); err != nil || d != "" {
		t.Errorf("%v: %s", err, d)
	}
}

// excuse has partitions that nobody looked at for an hour: who was there before it is not gone
// after it, and who was gone stays so.
func excuse(t *testing.T, s *testkit.ClickHouse) {
	store := open(t, s, s.Database(t))
	now := time.Now().Truncate(time.Millisecond).UTC()
	at := func(d time.Duration) int64 { return now.Add(d).UnixMilli() }
	mark := func(partition uint32, instance uint64, watermark, heard time.Duration) watermarks.Watermark {
		return watermarks.Watermark{Topic: "t", Partitions: 2, Partition: partition, Instance: instance, First: at(-24 * time.Hour), Watermark: at(watermark), LastContact: at(heard)}
	}
	const gone, there = 7, 8
	advance := func(marks ...watermarks.Watermark) {
		t.Helper()
		if err := store.Advance(t.Context(), marks); err != nil {
			t.Fatal(err)
		}
	}
	asked := now
	told := func(complete time.Duration, gone ...uint64) {
		t.Helper()
		asked = asked.Add(time.Minute) // no earlier answer is good any more
		p, err := store.Progress(t.Context(), asked)
		if d := cmp.Diff(gone, p.Gone); err != nil || d != "" || !p.Complete.Equal(now.Add(complete)) {
			t.Errorf("complete until %v, %v: %s", p.Complete.Sub(now), err, d)
		}
	}
	for partition := range uint32(2) {
		advance(mark(partition, 0, -time.Hour, -time.Hour), mark(partition, gone, -3*time.Hour, -2*time.Hour), mark(partition, there, -61*time.Minute, -time.Hour))
	}
	told(-61*time.Minute, gone)
	for partition := range uint32(2) {
		if err := store.ForgiveOutage(t.Context(), "t", partition, now); err != nil {
			t.Fatal(err)
		}
		advance(mark(partition, 0, 0, 0))
	}
	told(-61*time.Minute, gone)
	// Without a gap nobody is excused.
	for partition := range uint32(2) {
		advance(mark(partition, 0, 11*time.Minute, 0))
		if err := store.ForgiveOutage(t.Context(), "t", partition, now.Add(11*time.Minute+watermarks.Unread)); err != nil {
			t.Fatal(err)
		}
	}
	asked = now.Add(11 * time.Minute)
	told(11*time.Minute, gone, there)
}
