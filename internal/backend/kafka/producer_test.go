package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/ship"
)

// fake is a cluster in this process: for units only, what promises durability is tested
// with brokers.
func fake(t *testing.T) (*kfake.Cluster, Config) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster, Config{Brokers: cluster.ListenAddrs(), Topic: "clicks"}
}

type noKeys struct{}

func (noKeys) DayKey(context.Context, time.Time) ([16]byte, error) { return [16]byte{}, nil }

// TestEveryClickIsInItsPartition ships a log and reads the topic: each click once, those of a
// link in one partition, those of an instance in the order of their sequence, and the end of
// the instance in each partition.
func TestEveryClickIsInItsPartition(t *testing.T) {
	_, cfg := fake(t)
	if _, err := Migrate(t.Context(), cfg, Topic{Partitions: 5}); err != nil {
		t.Fatal(err)
	}
	producer, err := NewProducer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	const n = 3000
	instance := shipped(t, producer, n)

	client, err := kgo.NewClient(append(cfg.options(), kgo.ConsumeTopics(cfg.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	links, highest, ended := map[string]int32{}, map[int32]int64{}, map[int32]bool{}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for got := 0; got < n || len(ended) < 5; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d of %d clicks, %d ends: %v", got, n, len(ended), err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			var e clicklog.Event
			p, err := ReadRecord(r.Value, &e)
			switch {
			case err != nil:
				t.Errorf("offset %d: %v", r.Offset, err)
			case p != nil:
				ended[r.Partition] = ended[r.Partition] || p.Instance == instance && p.Watermark == clicks.Ended
			default:
				got++
				if last, ok := highest[r.Partition]; ok && int64(e.ID.Sequence) <= last {
					t.Errorf("partition %d: sequence %d after %d", r.Partition, e.ID.Sequence, last)
				}
				highest[r.Partition] = int64(e.ID.Sequence)
				if was, ok := links[string(r.Key)]; ok && was != r.Partition {
					t.Errorf("%q is in partitions %d and %d", r.Key, was, r.Partition)
				}
				links[string(r.Key)] = r.Partition
				if !r.Timestamp.Equal(e.When()) {
					t.Errorf("a record of %v holds a click of %v", r.Timestamp, e.When())
				}
			}
		})
	}
}

// shipped records n clicks and brings them to a sink, to the end.
func shipped(t *testing.T, sink ship.Sink, n int) (instance uint64) {
	t.Helper()
	dir := t.TempDir()
	log, err := clicklog.Open(clicklog.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ring := capture.NewRing(capture.RingConfig{})
	capturer := capture.New(capture.Config{Ring: ring, Log: log, Keys: noKeys{}})
	random := rand.New(rand.NewPCG(1, 2))
	for range n {
		outcome := clicks.Redirected
		if random.IntN(5) == 0 {
			outcome = clicks.Orphan
		}
		ring.Record(&clicks.Raw{Time: time.Now().UnixMilli(), Code: fmt.Appendf(nil, "c%d", random.IntN(50)), Outcome: outcome, UserAgent: []byte("curl/8.5.0")})
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := capturer.Run(stopped); err != nil { // drains once
		t.Fatal(err)
	}
	s := ship.New(ship.Config{Log: log, Sink: sink, State: filepath.Join(dir, "shipped"), Instance: capturer.Instance()})
	if err := s.Run(stopped); err != nil {
		t.Fatal(err)
	}
	if got := s.Stats(); got.Events != uint64(n) || got.Failures != 0 {
		t.Fatalf("%+v, want %d events", got, n)
	}
	return capturer.Instance()
}

func TestATopicIsMadeOnce(t *testing.T) {
	_, cfg := fake(t)
	if _, err := Probe(t.Context(), cfg); !errors.Is(err, ErrNoTopic) {
		t.Errorf("before it is made: %v", err)
	}
	defer func() {
		if n, err := Probe(t.Context(), cfg); err != nil || n != 12 {
			t.Errorf("it has %d partitions, %v", n, err)
		}
	}()
	for i, made := range []bool{true, false} {
		topics, err := Migrate(t.Context(), cfg, Topic{})
		if diff := cmp.Diff([]Migrated{{"clicks", made}, {"clicks.dead", made}}, topics); err != nil || diff != "" {
			t.Errorf("call %d: %v; topics (-want +got):\n%s", i, err, diff)
		}
	}
	if _, err := Migrate(t.Context(), cfg, Topic{Partitions: 24}); err == nil {
		t.Error("a topic of 12 partitions is taken for one of 24")
	}
}

func TestURLs(t *testing.T) {
	good := map[string]string{
		"kafka://b1":                                        "[b1:9092] curt.clicks false false",
		"kafka://b1:1,b2,[::1]:3/a.b":                       "[b1:1 b2:9092 [::1]:3] a.b false false",
		"kafka://me:p%40ss@b1/?tls=true":                    "[b1:9092] curt.clicks true true",
		"kafka://me:secret@b1:9/x?sasl=plain&tls=false":     "[b1:9] x false true",
		"kafka://me:secret@b1:9/x?sasl=scram-sha-256":       "[b1:9] x false true",
		"kafka://me:secret@b1:9,b2:9/x/?sasl=scram-sha-512": "[b1:9 b2:9] x false true",
	}
	for raw, want := range good {
		c, err := Parse(raw)
		if got := fmt.Sprint(c.Brokers, " ", c.Topic, " ", c.TLS != nil, " ", c.Login != nil); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", raw, got, err, want)
		}
	}
	for _, raw := range []string{
		"", "b1:9092", "kafka://", "kafka:///topic", "kafka://b1,,b2", "kafka://b1:port", "kafka://b1/a b", "kafka://b1/..", "kafka://b1/a/b",
		"kafka://b1/?ca=none.pem", "kafka://b1?acks=0", "kafka://b1/?acks=0", "kafka://b1/?tls=yes", "kafka://b1/?sasl=plain", "kafka://me:pw@b1/?sasl=gssapi", "kafka://me:%zz@b1",
	} {
		if c, err := Parse(raw); err == nil {
			t.Errorf("%q is taken: %+v", raw, c)
		}
	}
}
