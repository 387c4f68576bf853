package clickhouse_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/clicks"
	"curt/internal/clicks/ship"
	"curt/internal/testkit"
)

// told is a watermark in seconds: of a life of the topic, a partition of two, an instance.
type told struct {
	life                    string
	partition               uint32
	instance                uint64
	first, watermark, heard int64
}

// ends is the watermark of an instance that has ended.
const ends = -1

func watermarksOf(all []told) []watermarks.Watermark {
	marks := make([]watermarks.Watermark, len(all))
	for i, m := range all {
		until := m.watermark * 1000
		if m.watermark == ends {
			until = clicks.Ended
		}
		marks[i] = watermarks.Watermark{Topic: m.life, Partition: m.partition, Partitions: 2, Instance: m.instance, First: m.first * 1000, Watermark: until, LastContact: m.heard * 1000}
	}
	return marks
}

// read are both partitions of a life, looked at up to a time.
func read(life string, until int64) []told {
	return []told{{life, 0, 0, until, until, until}, {life, 1, 0, until, until, until}}
}

// said is what an instance promised in both partitions.
func said(life string, instance uint64, first, watermark, heard int64) []told {
	return []told{{life, 0, instance, first, watermark, heard}, {life, 1, instance, first, watermark, heard}}
}

func all(parts ...[]told) (list []told) {
	for _, p := range parts {
		list = append(list, p...)
	}
	return list
}

// sender is one in seconds; forgotten 0 = it is not.
func sender(instance uint64, began, forgotten int64) ship.Sender {
	s := ship.Sender{Folder: "f", Instance: instance, Began: time.Unix(began, 0).UTC()}
	if forgotten != 0 {
		s.Forgotten = time.Unix(forgotten, 0).UTC()
	}
	return s
}

// TestWhoIsWaitedFor adds up lives of topics and senders. The newest life is b; times are
// seconds, and it is 2000 unless the case says otherwise.
func TestWhoIsWaitedFor(t *testing.T) {
	const minute = 60
	type want struct {
		complete  int64 // 0 = not known
		instances int
		gone      []uint64
		ended     bool // of the first sender
		until     int64
		heard     int64
		silent    bool
	}
	for name, test := range map[string]struct {
		marks   []told
		senders []ship.Sender
		now     int64
		want    want
	}{
		"a sender that nobody has heard of": {
			marks:   all(read("b", 1000), said("b", 8, 1, 990, 999)),
			senders: []ship.Sender{sender(7, 900, 0)},
			want:    want{complete: 900, instances: 2, until: 900},
		},
		"a sender that nobody has heard of, for ten minutes less one second": {
			marks:   all(read("b", 1000)),
			senders: []ship.Sender{sender(7, 401, 0)},
			want:    want{complete: 401, instances: 1, until: 401},
		},
		"a sender that nobody has heard of for ten minutes holds": {
			marks:   all(read("b", 1000)),
			senders: []ship.Sender{sender(7, 400, 0)},
			want:    want{complete: 400, instances: 1, gone: []uint64{7}, until: 400, silent: true},
		},
		"a sender of which nothing is known at all": {
			marks:   all(read("b", 1000)),
			senders: []ship.Sender{sender(7, 0, 0)},
			want:    want{instances: 1, gone: []uint64{7}, silent: true},
		},
		"what it has promised counts, not when it began": {
			marks:   all(read("b", 1000), said("b", 7, 1, 990, 999)),
			senders: []ship.Sender{sender(7, 1, 0)},
			want:    want{complete: 990, instances: 1, until: 990, heard: 999},
		},
		"a sender that is silent holds": {
			marks:   all(read("b", 1000), said("b", 7, 1, 390, 400)),
			senders: []ship.Sender{sender(7, 1, 0)},
			want:    want{complete: 390, instances: 1, gone: []uint64{7}, until: 390, heard: 400, silent: true},
		},
		"one that is no sender's does not": {
			marks: all(read("b", 1000), said("b", 7, 1, 390, 400)),
			want:  want{complete: 1000, instances: 1, gone: []uint64{7}},
		},
		"a sender that has ended": {
			marks:   all(read("b", 1000), said("b", 7, 1, ends, 400)),
			senders: []ship.Sender{sender(7, 1, 0)},
			want:    want{complete: 1000, ended: true, heard: 400},
		},
		"a sender that has ended in one partition": {
			marks:   all(read("b", 1000), []told{{"b", 0, 7, 1, ends, 400}, {"b", 1, 7, 1, 390, 400}}),
			senders: []ship.Sender{sender(7, 1, 0)},
			want:    want{complete: 390, instances: 1, gone: []uint64{7}, until: 390, heard: 400, silent: true},
		},
		"a sender that was forgotten": {
			marks:   all(read("b", 1000), said("b", 7, 1, 390, 400)),
			senders: []ship.Sender{sender(7, 1, 400)},
			want:    want{complete: 1000, until: 390, heard: 400},
		},
		"a sender that was forgotten, and was never heard of": {
			marks:   all(read("b", 1000)),
			senders: []ship.Sender{sender(7, 1, 400)},
			want:    want{complete: 1000, until: 1},
		},
		"a sender that is heard of after it was forgotten": {
			marks:   all(read("b", 1000), said("b", 7, 1, 990, 999)),
			senders: []ship.Sender{sender(7, 1, 998)},
			want:    want{complete: 990, instances: 1, until: 990, heard: 999},
		},
		"one that spoke in an earlier life of the topic": {
			marks: all(read("a", 900), said("a", 7, 1, 880, 890), read("b", 1000)),
			want:  want{complete: 880, instances: 1},
		},
		"one that spoke in an earlier life of the topic, in one partition": {
			marks: all(read("a", 900), []told{{"a", 0, 7, 700, 880, 890}}, read("b", 1000)),
			want:  want{complete: 700, instances: 1},
		},
		"one that spoke in an earlier life of the topic, ten minutes ago": {
			marks: all(read("a", 400), said("a", 7, 1, 380, 400), read("b", 1000)),
			want:  want{complete: 1000, instances: 1, gone: []uint64{7}},
		},
		"a sender that spoke in an earlier life of the topic, ten minutes ago": {
			marks:   all(read("a", 400), said("a", 7, 1, 380, 400), read("b", 1000)),
			senders: []ship.Sender{sender(7, 1, 0)},
			want:    want{complete: 380, instances: 1, gone: []uint64{7}, until: 380, heard: 400, silent: true},
		},
		"one that spoke in two earlier lives": {
			marks: all(read("a", 900), said("a", 7, 1, 600, 610), said("c", 7, 1, 880, 890), read("b", 1000)),
			want:  want{complete: 880, instances: 1},
		},
		"one that speaks in the new life, and would have held from the one before": {
			marks: all(read("a", 900), said("a", 7, 1, 880, 9999), read("b", 1000), said("b", 7, 870, 990, 999)),
			want:  want{complete: 990, instances: 1},
		},
		"one that ended in an earlier life of the topic": {
			marks:   all(read("a", 900), said("a", 7, 1, ends, 890), read("b", 1000)),
			senders: []ship.Sender{sender(7, 1, 0)},
			want:    want{complete: 1000, ended: true, heard: 890},
		},
		"one that ended in an earlier life, in one partition": {
			marks: all(read("a", 900), []told{{"a", 0, 7, 1, ends, 890}, {"a", 1, 7, 1, 880, 890}}, read("b", 1000)),
			want:  want{complete: 880, instances: 1},
		},
		"the new life is not known as a whole": {
			marks:   all(read("a", 900), said("a", 7, 1, 880, 890), read("b", 1000)[:1]),
			senders: []ship.Sender{sender(7, 1, 0)},
			want:    want{until: 880, heard: 890},
		},
		"who reads has a clock that was ahead": {
			marks: all(read("b", 9000)), now: 1500,
			want: want{complete: 1500},
		},
		"one that is not gone by the clock": {
			marks: all(read("b", 9000), said("b", 7, 1, 950, 1000)), now: 1000 + 10*minute - 1,
			want: want{complete: 950, instances: 1},
		},
	} {
		if test.now == 0 {
			test.now = 2000
		}
		p := watermarks.ProgressOf(watermarksOf(test.marks), "b", test.senders, time.Unix(test.now, 0))
		got := want{instances: p.Instances, gone: p.Gone}
		seconds := func(t time.Time) int64 { return max(0, t.Unix()) }
		got.complete = seconds(p.Complete)
		if len(p.Senders) != len(test.senders) {
			t.Errorf("%s: %+v", name, p)
			continue
		}
		if len(p.Senders) > 0 {
			s := p.Senders[0]
			got.ended, got.silent, got.until, got.heard = s.Ended, s.Gone, seconds(s.Until), seconds(s.LastContact)
		}
		if d := cmp.Diff(test.want, got, cmp.AllowUnexported(want{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// knowSenders has a store ask who may hold clicks, until that fails.
func knowSenders(t *testing.T, s *testkit.ClickHouse) {
	var senders []ship.Sender
	var away error
	now := time.Now().Truncate(time.Millisecond).UTC()
	store, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: s.URL(s.Database(t)), Senders: func(context.Context) ([]ship.Sender, error) { return senders, away }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	until := func(at time.Duration, want time.Duration, known bool) {
		t.Helper()
		p, err := store.Progress(t.Context(), now.Add(at))
		if err != nil || p.Complete.IsZero() == known || known && !p.Complete.Equal(now.Add(want)) {
			t.Errorf("after %v complete until %v, %v; want %v", at, p.Complete.Sub(now), err, want)
		}
	}
	mark := watermarks.Watermark{Topic: "t", Partitions: 1, First: now.UnixMilli(), Watermark: now.Add(time.Hour).UnixMilli(), LastContact: now.UnixMilli()}
	if err := store.Advance(t.Context(), []watermarks.Watermark{mark}); err != nil {
		t.Fatal(err)
	}
	away = errors.New("nobody can say")
	until(time.Minute, 0, false)
	away = nil
	until(2*time.Minute, 2*time.Minute, true)
	senders = []ship.Sender{{Folder: "a", Instance: 7, Began: now.Add(90 * time.Second)}}
	until(3*time.Minute, 90*time.Second, true)
	// While nobody can say, what was known holds, up to then.
	senders = nil
	until(4*time.Minute, 4*time.Minute, true)
	away = errors.New("nobody can say")
	senders = []ship.Sender{{Folder: "b", Instance: 8, Began: now}}
	until(5*time.Minute, 4*time.Minute, true)
	until(6*time.Minute, 4*time.Minute, true)
}
