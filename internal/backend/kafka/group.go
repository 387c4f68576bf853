package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// GroupConfig says what a member of a consumer group reads.
type GroupConfig struct {
	Config

	Name string // of the group
	// Session is how long a member may say nothing before its partitions go to others;
	// 0 = 10 s.
	Session time.Duration
	Logger  *slog.Logger // nil = none

	// Assigned is told of partitions that are this member's from now on, and returns from
	// which offset each is to be read; one below zero is the beginning. It may be called
	// before Join returns.
	Assigned func([]Start) map[int32]int64
	// Lost is told of partitions that are no longer this member's. It MUST return only when
	// nothing more is committed for them: they go to others then. gone says that others may
	// have them already.
	Lost func(partitions []int32, gone bool)
}

// Start is where somebody left a partition.
type Start struct {
	Partition int32
	Committed int64  // the offset that was committed last; -1 = none
	Metadata  string // what was committed with it
	Member    string // by which this member commits for the partition
}

// Group is one membership in a consumer group. It never commits by itself. Partitions move
// from member to member without the others having to stop. Poll is called by one goroutine,
// the other methods by any.
type Group struct {
	Topic      ID  // of the life of the topic that this membership reads; set in Join, as the next
	Partitions int // of the topic

	cfg     GroupConfig
	client  *kgo.Client
	commits *kgo.Client // sends each request once: see Commit
	dead    *kgo.Client // asks about the topic, and writes dead letters

	mu      sync.Mutex
	fetched map[int32]Start // guarded by mu: of those that are being assigned
	member  string          // guarded by mu: who fetched them

	joined     string // guarded by mu: the member that was told last what it has
	generation int32  // guarded by mu: of that assignment
}

const (
	sessionDefault = 10 * time.Second

	// fetchBytes bounds what is read at once from a broker, compressed; of a partition a
	// quarter of it.
	fetchBytes = 4 << 20
)

// Join begins a membership, which Close ends. Nothing is read before Poll.
func Join(ctx context.Context, c GroupConfig) (*Group, error) {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Session <= 0 {
		c.Session = sessionDefault
	}
	g := &Group{cfg: c, fetched: map[int32]Start{}}
	var err error
	if g.commits, err = kgo.NewClient(append(c.options(), kgo.RequestRetries(0))...); err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	if g.dead, err = kgo.NewClient(append(c.options(), kgo.DefaultProduceTopic(c.deadTopic()))...); err != nil {
		return nil, errors.Join(fmt.Errorf("kafka: %w", err), g.Close())
	}
	if err = g.describe(ctx); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	g.client, err = kgo.NewClient(append(c.options(),
		kgo.ConsumerGroup(c.Name), kgo.ConsumeTopics(c.Topic), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), // of nothing that was read yet, or of what Kafka no longer has
		kgo.SessionTimeout(c.Session), kgo.HeartbeatInterval(c.Session/5), kgo.RebalanceTimeout(max(c.Session, sessionDefault)),
		kgo.FetchMaxBytes(fetchBytes), kgo.FetchMaxPartitionBytes(fetchBytes/4), kgo.FetchMaxWait(500*time.Millisecond),
		kgo.OnPartitionsAssigned(g.told), kgo.OnOffsetsFetched(g.fetchedOffsets), kgo.AdjustFetchOffsetsFn(g.assigned),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { g.lost(p, false) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { g.lost(p, true) }),
	)...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("kafka: %w", err), g.Close())
	}
	return g, nil
}

// Close leaves the group: Lost is told of all partitions first.
func (g *Group) Close() error {
	for _, c := range []*kgo.Client{g.client, g.commits, g.dead} {
		if c != nil {
			c.CloseAllowingRebalance()
		}
	}
	return nil
}

// told notes that this member has been told all that it has in a generation, and what it has no
// more: the library calls it after Lost, also where nothing came.
func (g *Group) told(_ context.Context, client *kgo.Client, _ map[string][]int32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.joined, g.generation = client.GroupMetadata()
}

// fetchedOffsets keeps what stands beside the offsets that are about to be assigned.
func (g *Group) fetchedOffsets(_ context.Context, client *kgo.Client, r *kmsg.OffsetFetchResponse) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.member, _ = client.GroupMetadata()
	for _, group := range r.Groups {
		for _, topic := range group.Topics {
			if topic.Topic != g.cfg.Topic {
				continue
			}
			for _, p := range topic.Partitions {
				s := Start{Partition: p.Partition, Committed: p.Offset}
				if p.Metadata != nil {
					s.Metadata = *p.Metadata
				}
				g.fetched[p.Partition] = s
			}
		}
	}
	return nil
}

// assigned asks from where to read.
func (g *Group) assigned(_ context.Context, all map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	g.mu.Lock()
	var starts []Start
	for p := range all[g.cfg.Topic] {
		s, ok := g.fetched[p]
		if !ok {
			s = Start{Partition: p, Committed: -1}
		}
		s.Member = g.member
		starts = append(starts, s)
		delete(g.fetched, p)
	}
	g.mu.Unlock()
	for p, at := range g.cfg.Assigned(starts) {
		offset := kgo.NewOffset().At(at).WithEpoch(-1)
		if at < 0 {
			offset = kgo.NewOffset().AtStart()
		}
		all[g.cfg.Topic][p] = offset
	}
	return all, nil
}

func (g *Group) lost(all map[string][]int32, gone bool) {
	if list := all[g.cfg.Topic]; len(list) > 0 {
		g.cfg.Lost(list, gone)
	}
}

// Fetched is what was read from a partition, in order.
type Fetched struct {
	Partition int32
	Records   []*kgo.Record
}

// Poll calls f with what was read next, of one partition at a time, or with nothing after a
// second. No partition comes or goes before it returns. f MUST NOT wait.
func (g *Group) Poll(ctx context.Context, f func(Fetched)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	fetches := g.client.PollFetches(ctx)
	defer g.client.AllowRebalance()
	var failed error
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if p.Err != nil && !errors.Is(p.Err, context.DeadlineExceeded) && !errors.Is(p.Err, context.Canceled) {
			failed = fmt.Errorf("kafka: read %s: %w", g.cfg.Topic, p.Err)
		}
		if len(p.Records) > 0 {
			f(Fetched{p.Partition, p.Records})
		}
	})
	return failed
}

// Pause keeps a partition from being read for a while; what was read comes all the same.
func (g *Group) Pause(partition int32) {
	g.client.PauseFetchPartitions(map[string][]int32{g.cfg.Topic: {partition}})
}

// Resume ends Pause.
func (g *Group) Resume(partition int32) {
	g.client.ResumeFetchPartitions(map[string][]int32{g.cfg.Topic: {partition}})
}

// Ends returns where the partitions end: the offset of the next record of each. The error is
// [ErrRemade] where these are another topic's than the one that was joined, which is read no more.
func (g *Group) Ends(ctx context.Context) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	listed, err := kadm.NewClient(g.dead).ListEndOffsets(ctx, g.cfg.Topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("kafka: ends of %s: %w", g.cfg.Topic, err)
	}
	// Afterwards: what was listed is of this life if it still lives.
	t, err := details(ctx, g.dead, g.cfg.Topic)
	switch {
	case err != nil:
		return nil, err
	case ID(t.ID) != g.Topic:
		return nil, fmt.Errorf("kafka: ends of %s: %w", g.cfg.Topic, ErrRemade)
	}
	ends := map[int32]int64{}
	listed.Each(func(l kadm.ListedOffset) { ends[l.Partition] = l.Offset })
	return ends, nil
}
