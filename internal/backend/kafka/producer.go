package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/ship"
)

const (
	// maxBuffered bounds what waits in memory to be acknowledged, keys and values.
	maxBuffered = 32 << 20

	// linger is how long a batch waits for more: at 5,000 clicks a second over 12 partitions
	// some 20 of a partition share one.
	linger = 50 * time.Millisecond

	// fastest is the level of zstd, as its library counts them. The one above, which is its
	// default, takes half as long again, for a hundredth fewer bytes.
	fastest = 1

	// dialBound is how long a connection may take to be made.
	dialBound = 3 * time.Second
)

// Producer writes clicks to a topic. It is a ship.Sink.
//
// The client keeps to the life of the topic that it knew first, and writes to no other. So each
// promise looks which one it is, and there is another client for another life.
type Producer struct {
	cfg       Config
	shipments sync.Pool // of *shipment
	life      ID        // owned by the caller of SendWatermark; zero = not known yet

	mu     sync.Mutex
	client *kgo.Client // guarded by mu
	closed bool        // guarded by mu
}

var _ ship.Sink = (*Producer)(nil)

// NewProducer returns a producer for the topic of c, which [Migrate] made. It connects when it
// sends first, and again whenever it has to. Close releases it.
func NewProducer(c Config) (*Producer, error) {
	client, err := c.producing()
	if err != nil {
		return nil, err
	}
	return &Producer{cfg: c, client: client}, nil
}

// producing returns a client that writes to the topic.
func (c Config) producing(more ...kgo.Opt) (*kgo.Client, error) {
	options := append(c.options(),
		kgo.DefaultProduceTopic(c.Topic),
		kgo.RequiredAcks(kgo.AllISRAcks()), // with idempotence, which is the default
		kgo.ProducerBatchCompression(kgo.ZstdCompression().WithLevel(fastest), kgo.NoCompression()),
		kgo.ProducerLinger(linger),
		kgo.MaxBufferedBytes(maxBuffered),
		kgo.MaxBufferedRecords(maxBuffered/64),
		kgo.RecordPartitioner(partitioner{kgo.StickyKeyPartitioner(nil)}),
	)
	client, err := kgo.NewClient(append(options, more...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return client, nil
}

// Close gives up what was not acknowledged.
func (p *Producer) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.client.CloseAllowingRebalance()
}

func (p *Producer) current() *kgo.Client { p.mu.Lock(); defer p.mu.Unlock(); return p.client }

// renew takes another client. What the one before had not brought to its end fails.
func (p *Producer) renew() error {
	client, err := p.cfg.producing()
	if err != nil {
		return err
	}
	p.mu.Lock()
	before := p.client
	if p.closed {
		before = client
	} else {
		p.client = client
	}
	p.mu.Unlock()
	before.CloseAllowingRebalance() // without mu: it tells of each record
	return nil
}

// Send implements ship.Sink. It waits while [maxBuffered] bytes are on their way.
func (p *Producer) Send(ctx context.Context, b *clicklog.Block, done func(error)) error {
	s := p.shipment(b, done)
	err := b.Events(func(e *clicklog.Event) error {
		k := len(s.bytes)
		s.bytes = appendKey(s.bytes, e)
		v := len(s.bytes)
		s.bytes = appendClick(s.bytes, e)
		s.records = append(s.records, kgo.Record{
			Key: s.bytes[k:v:v], Value: s.bytes[v:len(s.bytes):len(s.bytes)], Timestamp: e.When(),
		})
		return nil
	})
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	if len(s.records) == 0 {
		done(nil)
		return nil
	}
	s.left = len(s.records)
	arrived, client := s.arrived, p.current()
	for i := range s.records {
		client.Produce(ctx, &s.records[i], arrived)
	}
	return nil
}

// appendKey appends the key of an event's record: that of its link, so that its clicks stay
// in order and in one partition. A request for no link has one that a few hundred in turn
// share, and that is the same when it is sent again.
func appendKey(b []byte, e *clicklog.Event) []byte {
	if e.Outcome == clicks.Orphan {
		b = binary.BigEndian.AppendUint64(b, e.ID.Instance)
		return binary.BigEndian.AppendUint64(b, e.ID.Sequence>>8)
	}
	domain, code := clicklog.SplitKey(e.Key)
	return append(append(append(b, domain...), '/'), code...)
}

// shipment is a block on its way. Its records live and die together, in two pieces of memory
// that serve the next block after them: fresh ones cost as much as filling them.
type shipment struct {
	records []kgo.Record
	bytes   []byte // keys and values of records
	reuse   *sync.Pool

	mu   sync.Mutex
	left int   // guarded by mu
	err  error // guarded by mu
	done func(error)
}

// shipment returns one with room for a block.
func (p *Producer) shipment(b *clicklog.Block, done func(error)) *shipment {
	s, _ := p.shipments.Get().(*shipment)
	if s == nil {
		s = &shipment{reuse: &p.shipments}
	}
	s.records = slices.Grow(s.records[:0], b.Count)
	s.bytes = slices.Grow(s.bytes[:0], b.Size()+64*b.Count)
	s.err, s.done = nil, done
	return s
}

// arrived notes what became of a record. The client forgets the record before it tells.
func (s *shipment) arrived(_ *kgo.Record, err error) {
	s.mu.Lock()
	s.left--
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("kafka: %w", err)
	}
	last, result := s.left == 0, s.err
	s.mu.Unlock()
	if !last {
		return
	}
	done := s.done
	if s.done = nil; result == nil {
		s.reuse.Put(s)
	}
	done(result)
}

// SendWatermark implements ship.Sink: every partition is told. An error that is [ErrRemade] says that
// from now on everything goes to another life of the topic.
func (p *Producer) SendWatermark(ctx context.Context, instance uint64, watermark int64) error {
	n, err := p.partitions(ctx)
	if err != nil {
		return err
	}
	value := promiseRecord(InstanceMark{instance, watermark})
	records := make([]*kgo.Record, n)
	for i := range records {
		records[i] = &kgo.Record{Value: value, Partition: int32(i)}
	}
	if err := p.current().ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("kafka: promise: %w", err)
	}
	return nil
}

// partitions returns how many the topic has, which it looks for by its name.
func (p *Producer) partitions(ctx context.Context) (int, error) {
	t, err := details(ctx, p.current(), p.cfg.Topic)
	if err != nil {
		return 0, err
	}
	before := p.life
	if p.life = ID(t.ID); before != p.life && before != (ID{}) {
		return 0, errors.Join(fmt.Errorf("kafka: topic %s: %w", p.cfg.Topic, ErrRemade), p.renew())
	}
	if len(t.Partitions) == 0 {
		return 0, fmt.Errorf("kafka: topic %s has no partitions", p.cfg.Topic)
	}
	return len(t.Partitions), nil
}

// partitioner puts records with a key where Kafka's own producers put them, and promises, which
// have none, where they say.
type partitioner struct{ keys kgo.Partitioner }

func (p partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return topicPartitioner{p.keys.ForTopic(topic)}
}

type topicPartitioner struct{ keys kgo.TopicPartitioner }

func (topicPartitioner) RequiresConsistency(*kgo.Record) bool { return true }

func (p topicPartitioner) Partition(r *kgo.Record, n int) int {
	if r.Key == nil {
		return int(r.Partition)
	}
	return p.keys.Partition(r, n)
}
