package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// State is what a cluster says of itself, of the topic, and of the workers.
type State struct {
	Brokers    int // available ones
	Partitions int
	Offline    int   // partitions without a leader
	Lacking    int   // partitions of which a replica is behind or missing
	Workers    int   // members of the group
	Waiting    int64 // records that the group has not committed
}

// Inspect reads the state of a cluster; its error may be ErrNoTopic.
func Inspect(ctx context.Context, c Config) (s State, err error) {
	client, err := kgo.NewClient(c.options()...)
	if err != nil {
		return s, fmt.Errorf("kafka: %w", err)
	}
	defer client.Close()
	t, err := details(ctx, client, c.Topic)
	if err != nil {
		return s, err
	}
	s.Partitions = len(t.Partitions)
	for _, p := range t.Partitions {
		if p.Leader < 0 {
			s.Offline++
		}
		if len(p.ISR) < len(p.Replicas) {
			s.Lacking++
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	admin := kadm.NewClient(client)
	brokers, err := admin.ListBrokers(ctx)
	if err != nil {
		return s, fmt.Errorf("kafka: list brokers: %w", err)
	}
	s.Brokers = len(brokers)
	groups, err := admin.DescribeGroups(ctx, c.Topic)
	if err == nil {
		err = groups.Error()
	}
	if errors.Is(err, kerr.GroupIDNotFound) { // nobody has ever read it
		err = nil
	}
	if err != nil {
		return s, fmt.Errorf("kafka: describe the group %s: %w", c.Topic, err)
	}
	s.Workers = len(groups[c.Topic].Members)
	s.Waiting, err = waiting(ctx, admin, c.Topic)
	return s, err
}

// waiting returns how many records of a topic the group of its name has not committed.
func waiting(ctx context.Context, admin *kadm.Client, topic string) (n int64, err error) {
	committed, err := admin.FetchOffsets(ctx, topic)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return 0, fmt.Errorf("kafka: offsets of the group %s: %w", topic, err)
	}
	first, err := admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return 0, fmt.Errorf("kafka: first offsets of topic %s: %w", topic, err)
	}
	last, err := admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, fmt.Errorf("kafka: last offsets of topic %s: %w", topic, err)
	}
	last.Each(func(end kadm.ListedOffset) {
		if end.Err != nil { // the partition has no leader, which is told apart
			return
		}
		from := int64(0)
		if start, ok := first.Lookup(topic, end.Partition); ok && start.Err == nil {
			from = start.Offset
		}
		if at, ok := committed.Lookup(topic, end.Partition); ok && at.Err == nil {
			from = max(from, at.At)
		}
		n += max(0, end.Offset-from)
	})
	return n, nil
}
