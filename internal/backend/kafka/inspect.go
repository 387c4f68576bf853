package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// State is what a cluster says of itself, of the topic, and of the workers.
type State struct {
	Brokers    int // available ones
	Partitions int
	Offline    int // partitions without a leader
	Lacking    int // partitions of which a replica is behind or missing
	Workers    int // members of the group
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
	if err != nil {
		return s, fmt.Errorf("kafka: describe the group of the workers: %w", err)
	}
	s.Workers = len(groups[c.Topic].Members)
	return s, nil
}
