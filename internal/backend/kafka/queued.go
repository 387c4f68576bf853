package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
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
	// queuedBound is how long a link may take to be acknowledged: a caller waits meanwhile. The brokers of a cluster elect another leader within
	// 9 s by default, which is too long to wait; a create that is sent again has the same id.
	queuedBound = 4 * time.Second
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

// Shared returns the topic that two places have in common, each with its dead letters and one with created links beside its clicks; "" if none.
func (c Config) Shared(queued Config) string {
	if !slices.ContainsFunc(c.Brokers, func(b string) bool { return slices.Contains(queued.Brokers, b) }) {
		return ""
	}
	for _, topic := range []string{queued.Topic, queued.deadTopic()} {
		if slices.Contains([]string{c.Topic, c.deadTopic(), c.Created().Topic}, topic) {
			return topic
		}
	}
	return ""
}

// ErrUnsafe says that the topic acknowledges what fewer than two brokers have.
var ErrUnsafe = errors.New("fewer than two in-sync replicas are required")

// Safe returns ErrUnsafe, wrapped with the figures, where the topic acknowledges a record before two brokers have it,
// ErrNoTopic where there is none, and link.ErrUnavailable where no partition of it takes records now.
func (c Config) Safe(ctx context.Context) error {
	client, err := kgo.NewClient(c.options()...)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	defer client.Close()
	return c.safe(ctx, client)
}

func (c Config) safe(ctx context.Context, client *kgo.Client) error {
	t, err := details(ctx, client, c.Topic)
	if err != nil {
		return err
	}
	insync, err := c.insync(ctx, client)
	if err != nil {
		return fmt.Errorf("kafka: topic %s: %w", c.Topic, err)
	}
	replicas, takes := math.MaxInt, 0
	for _, p := range t.Partitions {
		if replicas = min(replicas, len(p.Replicas)); p.Leader >= 0 && len(p.ISR) >= insync {
			takes++
		}
	}
	switch {
	case takes == 0: // first: whoever accepts losses waits for no topic that takes nothing
		return link.Unavailable(fmt.Errorf("kafka: topic %s: no partition has a leader and %s", c.Topic, counted(insync, "in-sync replica")))
	case replicas < safeReplicas || insync < safeReplicas:
		return fmt.Errorf("kafka: topic %s has %s and min.insync.replicas=%d: %w", c.Topic, counted(replicas, "replica"), insync, ErrUnsafe)
	}
	return nil
}

// counted is a number with its noun.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// insync returns how many replicas must have a record before it is acknowledged.
func (c Config) insync(ctx context.Context, client *kgo.Client) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	configs, err := kadm.NewClient(client).DescribeTopicConfigs(ctx, c.Topic)
	if err != nil {
		return 0, err
	}
	of, err := configs.On(c.Topic, nil)
	if err == nil {
		err = of.Err
	}
	if err != nil {
		return 0, err
	}
	for _, one := range of.Configs {
		if one.Key == "min.insync.replicas" {
			n, err := strconv.Atoi(one.MaybeValue())
			return n, err
		}
	}
	return 1, nil
}

// QueuedLinks is the log of pending links: a pending.Log. It connects when it is used first.
type QueuedLinks struct {
	cfg   Config
	group string

	mu     sync.Mutex
	client *kgo.Client // writes; guarded by mu, as all below; nil = none is open
	asking *kgo.Client // asks: what waits to be written does not hold it up
	closed bool
}

var _ pending.Log = (*QueuedLinks)(nil)

// NewQueuedLinks returns the log that the topic of c is, which writers read as a group with the name of the topic. Close releases it.
func NewQueuedLinks(c Config) *QueuedLinks { return &QueuedLinks{cfg: c, group: c.Topic} }

// Close closes the connections. Records that are on their way fail.
func (q *QueuedLinks) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.Reset()
}

// Reset gives up what is on its way, and has what comes next begin with new connections: of records that were sent nobody knows whether
// they arrived.
func (q *QueuedLinks) Reset() {
	q.mu.Lock()
	open := []*kgo.Client{q.client, q.asking}
	q.client, q.asking = nil, nil
	q.mu.Unlock()
	for _, client := range open {
		if client != nil {
			client.CloseAllowingRebalance()
		}
	}
}

// open returns the client in a field, which it makes where there is none.
func (q *QueuedLinks) open(client **kgo.Client, make func() (*kgo.Client, error)) (*kgo.Client, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, link.Unavailable(errors.New("kafka: closed"))
	case *client != nil:
		return *client, nil
	}
	made, err := make()
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	*client = made
	return made, nil
}

// writing returns the client that writes. An idempotent producer does not let go of a record that was sent until a broker answers,
// however long that takes; here whoever sends a link twice sends the same, and a writer knows it again by its id. The context of each record
// bounds it: RecordDeliveryTimeout counts from the record's timestamp, which is when its create began, and fails a late retry at once.
func (q *QueuedLinks) writing() (*kgo.Client, error) {
	return q.open(&q.client, func() (*kgo.Client, error) {
		return q.cfg.producing(kgo.ProducerLinger(queuedLinger), kgo.AllowIdempotentProduceCancellation(), kgo.ProduceRequestTimeout(queuedBound))
	})
}

func (q *QueuedLinks) asks() (*kgo.Client, error) {
	return q.open(&q.asking, func() (*kgo.Client, error) { return kgo.NewClient(q.cfg.options()...) })
}

// Check is Safe, over a connection that is kept.
func (q *QueuedLinks) Check(ctx context.Context) error {
	client, err := q.asks()
	if err != nil {
		return err
	}
	return q.cfg.safe(ctx, client)
}

// Append implements pending.Log: nil means that all in-sync replicas have the records. It returns within queuedBound.
func (q *QueuedLinks) Append(ctx context.Context, records []pending.Record) ([]pending.Location, error) {
	client, err := q.writing()
	if err != nil {
		return nil, err
	}
	sent := make([]*kgo.Record, len(records))
	for i := range records {
		sent[i] = &kgo.Record{Key: []byte(records[i].Key), Value: records[i].Value, Timestamp: records[i].At}
	}
	within, cancel := context.WithTimeoutCause(ctx, queuedBound, fmt.Errorf("not acknowledged within %s", queuedBound))
	defer cancel()
	if err = produce(within, client, sent); err == nil {
		locations := make([]pending.Location, len(records))
		for i := range sent {
			locations[i] = pending.Location{Partition: sent[i].Partition, Offset: sent[i].Offset}
		}
		return locations, nil
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID) {
		q.Reset() // the topic may be another one by now
		return nil, link.Unavailable(fmt.Errorf("kafka: queue links in %s: %w", q.cfg.Topic, ErrNoTopic))
	}
	// Whether a broker has them is not known: a caller that tries again sends the same.
	return nil, fmt.Errorf("kafka: queue links in %s: %w", q.cfg.Topic, err)
}

// produce sends records, and returns once all are acknowledged, or at the latest when ctx ends: the records are the client's then.
func produce(ctx context.Context, client *kgo.Client, records []*kgo.Record) error {
	results := make(chan error, len(records))
	for _, r := range records {
		client.Produce(ctx, r, func(_ *kgo.Record, err error) { results <- err })
	}
	var failed error
	for range records {
		select {
		case err := <-results:
			failed = cmp.Or(failed, err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return failed
}

// Written implements pending.Log: writers commit what they have written.
func (q *QueuedLinks) Written(ctx context.Context) (map[int32]int64, error) {
	client, err := q.asks()
	if err != nil {
		return nil, err
	}
	offsets, err := kadm.NewClient(client).FetchOffsets(ctx, q.group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return map[int32]int64{}, nil // nobody has written anything
	}
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

// Lag returns how many records writers have not written, whoever reads them: those from the offset that the group committed for a
// partition, or from its beginning, up to its end.
func (q *QueuedLinks) Lag(ctx context.Context) (int64, error) {
	client, err := q.asks()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	admin := kadm.NewClient(client)
	written, err := q.Written(ctx) // before the ends: what comes between the two is lag
	if err != nil {
		return 0, err
	}
	starts, err := admin.ListStartOffsets(ctx, q.cfg.Topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("kafka: beginnings of %s: %w", q.cfg.Topic, err)
	}
	ends, err := admin.ListEndOffsets(ctx, q.cfg.Topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("kafka: ends of %s: %w", q.cfg.Topic, err)
	}
	lag := int64(0)
	ends.Each(func(end kadm.ListedOffset) {
		from := written[end.Partition]
		if start, known := starts.Lookup(q.cfg.Topic, end.Partition); known {
			from = max(from, start.Offset)
		}
		lag += max(0, end.Offset-from)
	})
	return lag, nil
}
