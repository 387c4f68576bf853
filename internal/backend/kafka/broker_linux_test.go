package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/ship"
	"curt/internal/testkit"
)

// TestBroker runs against Apache Kafka itself.
func TestBroker(t *testing.T) {
	_, c := topic(t)
	handOver(t, c)
}

// TestABrokerDies has the producer send on across the death of its broker.
func TestABrokerDies(t *testing.T) {
	testkit.Faults(t)
	k, c := topic(t)
	dieBetween(t, k, c)
}

// topic starts a broker and creates a topic.
func topic(t *testing.T) (*testkit.Kafka, Config) {
	t.Helper()
	k := testkit.StartKafka(t, 1)
	c, err := Parse(k.URL("clicks"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Migrate(t.Context(), c, Topic{Partitions: 3}); err != nil {
		t.Fatal(err)
	}
	return k, c
}

// member is a member of a group that notes what it is told.
type member struct {
	*Group

	mu     sync.Mutex
	starts map[int32]Start
}

func join(t *testing.T, c Config) *member {
	t.Helper()
	m := &member{starts: map[int32]Start{}}
	g, err := Join(t.Context(), GroupConfig{
		Config: c, Name: "readers", Session: 30 * time.Second, // nobody dies: a busy machine may stop for seconds
		Assigned: func(all []Start) map[int32]int64 {
			m.mu.Lock()
			defer m.mu.Unlock()
			from := map[int32]int64{}
			for _, s := range all {
				m.starts[s.Partition], from[s.Partition] = s, s.Committed
			}
			return from
		},
		Lost: func(all []int32, _ bool) {
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, p := range all {
				delete(m.starts, p)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.Group = g
	t.Cleanup(func() { _ = g.Close() })
	return m
}

// await polls until the member has n partitions.
func (m *member) await(t *testing.T, n int) map[int32]Start {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; {
		if err := m.Poll(t.Context(), func(Fetched) {}); err != nil {
			t.Log(err) // it is tried again
		}
		m.mu.Lock()
		all := maps.Clone(m.starts)
		m.mu.Unlock()
		if len(all) == n {
			return all
		}
		if time.Now().After(end) {
			t.Fatalf("after three minutes the member has %v, want %d", all, n)
		}
	}
}

// handOver commits as one member what the next is told, and shows who may not commit.
func handOver(t *testing.T, c Config) {
	first := join(t, c)
	all := first.await(t, 3)
	longest := strings.Repeat("x", MaxMetadata)
	for p, s := range all {
		if s.Committed != -1 || s.Member == "" {
			t.Errorf("%+v", s)
		}
		if err := first.Commit(t.Context(), s.Member, p, 10+int64(p), longest); err != nil {
			t.Error(err)
		}
	}
	if err := first.Commit(t.Context(), "somebody-else", 0, 99, ""); !errors.Is(err, ErrLeave) {
		t.Errorf("by another member: %v", err)
	}
	if err := first.Commit(t.Context(), all[0].Member, 0, 99, longest+"x"); !errors.Is(err, ErrLeave) {
		t.Errorf("more than a broker takes: %v", err)
	}
	second := join(t, c)
	var left, came map[int32]Start
	for end := time.Now().Add(3 * time.Minute); len(left)+len(came) != 3 || len(came) == 0; {
		if time.Now().After(end) {
			t.Fatalf("after three minutes %v and %v", left, came)
		}
		left, came = first.one(t), second.one(t)
	}
	for p, s := range came {
		if s.Committed != 10+int64(p) || s.Metadata != longest {
			t.Errorf("partition %d begins with %d and %d bytes", p, s.Committed, len(s.Metadata))
		}
	}
	for p := range left { // a partition that stayed, in a new generation, of which the member may not have heard
		first.commit(t, p, 20, "kept")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for p, s := range all {
		if err := first.Commit(t.Context(), s.Member, p, 99, ""); !errors.Is(err, ErrLeave) {
			t.Errorf("by a member that has left: %v", err)
		}
	}
	for p, s := range second.await(t, 3) {
		if s.Committed == 99 || s.Committed < 0 {
			t.Errorf("partition %d begins with %d", p, s.Committed)
		}
	}
}

// commit commits until the member may: while partitions move it may not yet.
func (m *member) commit(t *testing.T, p int32, offset int64, beside string) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; {
		err := m.Commit(t.Context(), m.one(t)[p].Member, p, offset, beside)
		if err == nil {
			return
		}
		if !errors.Is(err, ErrNotYet) || time.Now().After(end) {
			t.Fatalf("partition %d: %v", p, err)
		}
	}
}

// one polls once and returns what the member has.
func (m *member) one(t *testing.T) map[int32]Start {
	t.Helper()
	_ = m.Poll(t.Context(), func(Fetched) {})
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.starts)
}

// dieBetween ships clicks while the broker is killed and started again: each is there, in the
// order of its sequence, and what is there twice is told by it.
func dieBetween(t *testing.T, k *testkit.Kafka, c Config) {
	producer, err := NewProducer(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	const n = 10_000
	instance, sent := shipping(t, producer, n, nil)
	awaitSent(t, sent, n/4)
	k.Brokers[0].Kill(t)
	k.Brokers[0].Again(t)
	awaitSent(t, sent, n)
	counts := map[uint64]map[uint64]int{}
	highest := map[int32]map[uint64]uint64{}
	client, err := kgo.NewClient(append(c.options(), kgo.ConsumeTopics(c.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	distinct, again := 0, 0
	for distinct < n {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d clicks: %v", distinct, n, fetches.Err())
		}
		fetches.EachRecord(func(r *kgo.Record) {
			var e clicklog.Event
			if p, err := ReadRecord(r.Value, &e); err != nil || p != nil {
				return
			}
			if counts[e.ID.Instance] == nil {
				counts[e.ID.Instance] = map[uint64]int{}
			}
			if highest[r.Partition] == nil {
				highest[r.Partition] = map[uint64]uint64{}
			}
			counts[e.ID.Instance][e.ID.Sequence]++
			isNew := counts[e.ID.Instance][e.ID.Sequence] == 1
			if above := e.ID.Sequence+1 > highest[r.Partition][e.ID.Instance]; above != isNew {
				t.Errorf("partition %d: sequence %d, of which %d was the highest, came for the first time: %v",
					r.Partition, e.ID.Sequence, highest[r.Partition][e.ID.Instance], isNew)
			}
			highest[r.Partition][e.ID.Instance] = max(highest[r.Partition][e.ID.Instance], e.ID.Sequence+1)
			if isNew {
				distinct++
			} else {
				again++
			}
		})
	}
	if len(counts) != 1 || len(counts[instance]) != n {
		t.Errorf("clicks of %d instances, %d of ours", len(counts), len(counts[instance]))
	}
	t.Logf("%d clicks, %d of them again", distinct, again)
}

// shipping clicks n times within some seconds, and ships all of it until the test ends. The second half of the clicks
// waits until goOn is closed; nil = it does not.
func shipping(t *testing.T, sink ship.Sink, n int, goOn <-chan struct{}) (instance uint64, sent func() ship.Stats) {
	t.Helper()
	dir, began := t.TempDir(), time.Now()
	log, err := clicklog.Open(clicklog.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ring := capture.NewRing(capture.RingConfig{})
	capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: noKeys{}})
	s := ship.New(ship.Config{Log: log, Sink: sink, State: filepath.Join(dir, "shipped"), Instance: capturer.Instance(), Began: began})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, run := range []func(context.Context) error{log.Run, capturer.Run, s.Run} {
		all.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	all.Go(func() {
		for i := range n {
			if i == n/2 && goOn != nil {
				select {
				case <-goOn:
				case <-ctx.Done():
					return
				}
			}
			ring.Record(&clicks.Raw{Time: time.Now().UnixMilli(), Code: fmt.Appendf(nil, "c%d", i%50), Outcome: clicks.Redirected})
			if i%100 == 0 {
				time.Sleep(30 * time.Millisecond)
			}
		}
	})
	t.Cleanup(func() { cancel(); all.Wait() })
	return capturer.Instance(), s.Stats
}

func awaitSent(t *testing.T, sent func() ship.Stats, n uint64) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); sent().Events < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after three minutes %+v", sent())
		}
	}
}
