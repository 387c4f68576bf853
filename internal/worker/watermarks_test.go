package worker_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/clicks"
	"curt/internal/worker"
)

// Advance implements worker.Store.
func (l *ledger) Advance(_ context.Context, marks []clickhouse.Watermark) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks = append(l.marks, marks...)
	return nil
}

// Excuse implements worker.Store.
func (l *ledger) Excuse(_ context.Context, _ string, partition uint32, _ time.Time) error {
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
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
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
			t.Fatalf("after a minute ended in %v, read to the end %v", ended, through)
		}
	}
}
