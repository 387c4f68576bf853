package worker_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/encoding/protowire"

	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/clicks"
	"curt/internal/worker"
)

// Advance implements worker.Store.
func (l *ledger) Advance(_ context.Context, marks []watermarks.Watermark) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mute {
		l.refused++
		return errAway
	}
	l.marks = append(l.marks, marks...)
	return nil
}

// ForgiveOutage implements worker.Store.
func (l *ledger) ForgiveOutage(_ context.Context, _ string, partition uint32, _ time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.excused = append(l.excused, int(partition))
	return nil
}

// TestWatermarks waits until the end of a site was told of every partition.
func TestWatermarks(t *testing.T) {
	c := cluster(t, 3)
	l := newLedger(1)
	s := newSite(t, c, 1)
	s.click(t, 100, false)
	start(t, worker.Config{Kafka: c, Store: l})
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		ended, through := map[uint32]bool{}, map[uint32]bool{}
		l.mu.Lock()
		for _, m := range l.marks {
			if m.Instance == 0 {
				through[m.Partition] = true
				if !slices.Contains(l.excused, int(m.Partition)) {
					t.Errorf("partition %d was read on before anybody was excused", m.Partition)
				}
			} else if m.Watermark == clicks.Ended {
				ended[m.Partition] = true
			}
			if m.Partitions != 3 || m.Topic == "" || m.Watermark == 0 {
				t.Fatalf("%+v", m)
			}
		}
		missing := len(s.sent) - len(l.counted)
		l.mu.Unlock()
		if len(ended) == 3 && len(through) == 3 {
			if missing != 0 {
				t.Errorf("the end was told while %d clicks were missing", missing)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %v ended in %v, read to the end %v", patience, ended, through)
		}
	}
}

// TestAPromiseOfAClockThatIsAhead has an instance promise a day to come, by a clock that believes
// it, and go on once the clock has come back: nothing that is to come is told.
func TestAPromiseOfAClockThatIsAhead(t *testing.T) {
	c := cluster(t, 1)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers...), kgo.DefaultProduceTopic(c.Topic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	now := time.Now().UnixMilli()
	const day = 24 * 60 * 60 * 1000
	promise := func(instance uint64, watermark, at int64) {
		t.Helper()
		m := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), instance)
		m = protowire.AppendVarint(protowire.AppendTag(m, 2, protowire.VarintType), uint64(watermark))
		r := &kgo.Record{Value: protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), m), Timestamp: time.UnixMilli(at)}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	promise(7, now-5000, now)
	promise(7, now+day, now+day)
	promise(8, now+day, now+day)
	promise(9, now-1000, now)
	promise(9, now+day, now+day)
	promise(9, clicks.Ended, now+day)
	l := newLedger(1)
	w, _ := start(t, worker.Config{Kafka: c, Store: l})
	told := func(instance uint64) (first, watermark int64, heard bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, m := range l.marks {
			if m.Instance == instance {
				first, watermark, heard = m.First, m.Watermark, true
			}
		}
		return first, watermark, heard
	}
	await := func(instance uint64, first, watermark int64) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			f, u, heard := told(instance)
			if heard && f == first && u == watermark {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("of %d %d and %d are told (%v), want %d and %d", instance, f, u, heard, first, watermark)
			}
		}
	}
	await(9, now-1000, clicks.Ended)
	await(7, now-5000, now-5000)
	await(8, 0, 0)
	promise(7, now, now)
	promise(8, now, now)
	await(7, now-5000, now)
	await(8, 0, now)
	if n := w.Stats().Poison; n != 0 {
		t.Errorf("%d promises could not be read", n)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.marks {
		if m.Watermark > time.Now().UnixMilli() && m.Watermark != clicks.Ended {
			t.Errorf("%+v is told", m)
		}
	}
}

// TestAnEndIsToldBeforeItIsPassedBy has a store that takes nothing about who has ended for a while:
// nothing is committed behind it meanwhile.
func TestAnEndIsToldBeforeItIsPassedBy(t *testing.T) {
	c := cluster(t, 1)
	l := newLedger(1)
	l.mute = true
	s := newSite(t, c, 1)
	cfg := worker.Config{Kafka: c, Store: l}
	cfg.Age(30 * time.Millisecond)
	start(t, cfg)
	s.click(t, 100, false)
	l.await(t, s.sent)
	first := len(s.sent)
	s.click(t, 100, false) // another life, whose block is to be committed behind the end
	within := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not within %v: %s", patience, what)
			}
		}
	}
	refused := func() int { l.mu.Lock(); defer l.mu.Unlock(); return l.refused }
	at := refused()
	within("the end is told again and again", func() bool { return refused() > at+3 })
	if missing, _ := l.wrong(s.sent); missing != len(s.sent)-first {
		t.Errorf("%d of %d clicks are missing: a block was committed behind an end that nobody was told of", missing, len(s.sent)-first)
	}
	l.mu.Lock()
	l.mute = false
	l.mu.Unlock()
	l.await(t, s.sent)
	awaitEnds(t, l, s.sent, 1)
}
