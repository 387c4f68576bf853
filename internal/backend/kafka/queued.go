package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/link"
	"curt/internal/pending"
)

const (
	// queuedBound is how long a link may take to be acknowledged: less than a caller waits.
	queuedBound = 10 * time.Second
	// queuedLinger is how long links of several callers wait for each other.
	queuedLinger = 2 * time.Millisecond
	// safeReplicas is how many brokers must have a link before its create is answered.
	safeReplicas = 2
)

// Queued returns where links go that are to be written later, beside the clicks of c.
func (c Config) Queued() Config {
	c.Topic += ".links.queued"
	return c
}

// ErrUnsafe says that the topic acknowledges what fewer than two brokers have.
var ErrUnsafe = errors.New("fewer than two in-sync replicas are required")

// Safe returns ErrUnsafe, wrapped with the figures, where the topic acknowledges a record before two brokers have it, and
// ErrNoTopic where there is none.
func (c Config) Safe(ctx context.Context) error {
	client, err := kgo.NewClient(c.options()...)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	defer client.Close()
	t, err := details(ctx, client, c.Topic)
	if err != nil {
		return err
	}
	replicas := len(t.Partitions)
	for i, p := range t.Partitions {
		if i == 0 || len(p.Replicas) < replicas {
			replicas = len(p.Replicas)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	configs, err := kadm.NewClient(client).DescribeTopicConfigs(ctx, c.Topic)
	if err != nil {
		return fmt.Errorf("kafka: topic %s: %w", c.Topic, err)
	}
	of, err := configs.On(c.Topic, nil)
	if err == nil {
		err = of.Err
	}
	if err != nil {
		return fmt.Errorf("kafka: topic %s: %w", c.Topic, err)
	}
	insync := 1
	for _, one := range of.Configs {
		if one.Key != "min.insync.replicas" {
			continue
		}
		if insync, err = strconv.Atoi(one.MaybeValue()); err != nil {
			return fmt.Errorf("kafka: topic %s: min.insync.replicas: %w", c.Topic, err)
		}
	}
	if replicas < safeReplicas || insync < safeReplicas {
		return fmt.Errorf("kafka: topic %s has %d replicas and min.insync.replicas=%d: %w", c.Topic, replicas, insync, ErrUnsafe)
	}
	return nil
}

// QueuedLinks is the log of pending links: a pending.Log. It connects when it is used first.
type QueuedLinks struct {
	cfg   Config
	group string

	mu     sync.Mutex
	client *kgo.Client // guarded by mu; nil = none is open
	closed bool        // guarded by mu
}

var _ pending.Log = (*QueuedLinks)(nil)

// NewQueuedLinks returns the log that the topic of c is, which writers read as a group with the name of the topic. Close releases it.
func NewQueuedLinks(c Config) *QueuedLinks { return &QueuedLinks{cfg: c, group: c.Topic} }

// Close closes the connections. Records that are on their way fail.
func (q *QueuedLinks) Close() {
	q.mu.Lock()
	client := q.client
	q.client, q.closed = nil, true
	q.mu.Unlock()
	if client != nil {
		client.CloseAllowingRebalance()
	}
}

func (q *QueuedLinks) open() (*kgo.Client, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, fmt.Errorf("kafka: closed: %w", link.ErrUnavailable)
	case q.client != nil:
		return q.client, nil
	}
	var err error
	q.client, err = q.cfg.producing(kgo.ProducerLinger(queuedLinger), kgo.RecordDeliveryTimeout(queuedBound))
	return q.client, err
}

// drop gives a client up that failed for good: the topic may be another one by now.
func (q *QueuedLinks) drop(client *kgo.Client) {
	q.mu.Lock()
	mine := q.client == client
	if mine {
		q.client = nil
	}
	q.mu.Unlock()
	if mine {
		client.CloseAllowingRebalance()
	}
}

// Append implements pending.Log: nil means that all in-sync replicas have the records.
func (q *QueuedLinks) Append(ctx context.Context, records []pending.Record) ([]pending.Location, error) {
	client, err := q.open()
	if err != nil {
		return nil, err
	}
	sent := make([]*kgo.Record, len(records))
	for i := range records {
		sent[i] = &kgo.Record{Key: []byte(records[i].Key), Value: records[i].Value, Timestamp: records[i].At}
	}
	within, cancel := context.WithTimeout(ctx, queuedBound)
	defer cancel()
	locations := make([]pending.Location, len(records))
	results := client.ProduceSync(within, sent...)
	for i := range sent {
		locations[i] = pending.Location{Partition: sent[i].Partition, Offset: sent[i].Offset}
	}
	err = results.FirstErr()
	switch {
	case err == nil:
		return locations, nil
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		q.drop(client)
		return nil, fmt.Errorf("kafka: queue links in %s: %w: %w", q.cfg.Topic, link.ErrUnavailable, ErrNoTopic)
	}
	// Whether a broker has them is not known: a caller that tries again sends the same.
	return nil, fmt.Errorf("kafka: queue links in %s: %w", q.cfg.Topic, err)
}

// Written implements pending.Log: writers commit what they have written.
func (q *QueuedLinks) Written(ctx context.Context) (map[int32]int64, error) {
	client, err := q.open()
	if err != nil {
		return nil, err
	}
	offsets, err := kadm.NewClient(client).FetchOffsets(ctx, q.group)
	if err != nil {
		return nil, fmt.Errorf("kafka: offsets of %s: %w", q.group, err)
	}
	written := map[int32]int64{}
	for partition, o := range offsets[q.cfg.Topic] {
		if o.Err == nil && o.At >= 0 {
			written[partition] = o.At
		}
	}
	return written, nil
}
