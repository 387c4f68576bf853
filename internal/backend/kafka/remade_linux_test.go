package kafka

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/ship"
)

// TestATopicIsMadeAnew deletes the topic while clicks are sent. Everything that was not
// acknowledged before is in the new one, and who reads the old one hears that it is another.
func TestATopicIsMadeAnew(t *testing.T) {
	_, c := topic(t)
	producer, err := NewProducer(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	group := join(t, c)
	group.await(t, 3)
	if _, err := group.Ends(t.Context()); err != nil {
		t.Fatal(err)
	}
	const n = 4000
	gone := make(chan struct{})
	instance, sent := shipping(t, producer, n, gone)
	awaitSent(t, sent, n/4)
	remake(t, c, func() {
		close(gone) // or all may have been sent by then
		awaitFailure(t, sent)
	})
	awaitSent(t, sent, n)
	if _, err := group.Ends(t.Context()); !errors.Is(err, ErrRemade) {
		t.Errorf("whoever reads the topic of before hears %v", err)
	}

	client, err := kgo.NewClient(append(c.options(), kgo.ConsumeTopics(c.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	found, promised := map[uint64]bool{}, map[int32]bool{}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for len(promised) < 3 || !found[n-1] {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d clicks, promises in %v: %v", len(found), promised, fetches.Err())
		}
		fetches.EachRecord(func(r *kgo.Record) {
			var e clicklog.Event
			switch p, err := ReadRecord(r.Value, &e); {
			case err != nil:
				t.Error(err)
			case p != nil:
				promised[r.Partition] = promised[r.Partition] || p.Instance == instance
			case found[e.ID.Sequence]:
				t.Errorf("the click %d is there twice", e.ID.Sequence)
			default:
				found[e.ID.Sequence] = true
			}
		})
	}
	for sequence := uint64(n - len(found)); sequence < n; sequence++ {
		if !found[sequence] {
			t.Errorf("of %d clicks in the new topic %d is missing", len(found), sequence)
		}
	}
	if len(found) == n || len(found) == 0 {
		t.Errorf("%d of %d clicks are in the new topic: this shows nothing", len(found), n)
	}
}

// remake deletes the topic, and makes it again once something was done.
func remake(t *testing.T, c Config, meanwhile func()) {
	t.Helper()
	client, err := kgo.NewClient(c.options()...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).DeleteTopic(t.Context(), c.Topic); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := Probe(t.Context(), c); errors.Is(err, ErrNoTopic) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the topic is there three minutes after it was deleted")
		}
	}
	meanwhile()
	if topics, err := Migrate(t.Context(), c, Topic{Partitions: 3}); err != nil || !topics[0].New {
		t.Fatalf("%v, %v", topics, err)
	}
}

func awaitFailure(t *testing.T, sent func() ship.Stats) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); sent().Err == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after three minutes nothing has failed: %+v", sent())
		}
	}
}
