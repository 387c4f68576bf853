package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"curt/internal/background"
)

// Topic says how the topic of clicks is made.
type Topic struct {
	Partitions int           // 0 = 12, and as many as there are; 128 for some hundred thousand clicks a second
	Retention  time.Duration // 0 = 7 days: how long what reads it may be away
}

// ErrTopic is of a topic that is there and is not as it was asked for. More partitions move
// links to others, where clicks that are sent again are not known; so nothing is changed.
var ErrTopic = errors.New("the topic exists with other settings")

// ErrNoTopic says that Kafka answers, and has no such topic.
var ErrNoTopic = errors.New("no such topic: curt migrate creates it")

// ErrRemade says that the topic was deleted and made anew. Nothing that was in it is there, and what
// was said of it is of an earlier life.
var ErrRemade = errors.New("the topic was deleted and created again")

// Probe asks for the topic, and returns how many partitions it has.
func Probe(ctx context.Context, c Config) (partitions int, err error) {
	client, err := kgo.NewClient(c.options()...)
	if err != nil {
		return 0, fmt.Errorf("kafka: %w", err)
	}
	defer client.Close()
	t, err := details(ctx, client, c.Topic)
	return len(t.Partitions), err
}

// details asks for a topic; the error may be ErrNoTopic.
func details(ctx context.Context, client *kgo.Client, topic string) (kadm.TopicDetail, error) {
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	topics, err := kadm.NewClient(client).ListTopics(ctx, topic)
	if err == nil {
		err = topics.Error()
	}
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return kadm.TopicDetail{}, fmt.Errorf("kafka: topic %s: %w", topic, ErrNoTopic)
	case err != nil:
		return kadm.TopicDetail{}, fmt.Errorf("kafka: topic %s: %w", topic, err)
	}
	return topics[topic], nil
}

// deadRetention is how long records are kept that nobody can read: a month in which somebody
// may look at them.
const deadRetention = 30 * 24 * time.Hour

// Migrated is a topic that a migration created, or found.
type Migrated struct {
	Topic string
	New   bool
}

// Migrate makes the topic of c unless it is there, and the one of its dead letters. With three
// brokers or more each record has three replicas, of which two must have it before it is
// acknowledged.
func Migrate(ctx context.Context, c Config, t Topic) (topics []Migrated, err error) {
	client, err := kgo.NewClient(c.options()...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	dead := c
	dead.Topic = c.deadTopic()
	letters, err := dead.ensure(ctx, admin, Topic{Partitions: 1, Retention: deadRetention})
	if err != nil && !errors.Is(err, ErrTopic) {
		return nil, fmt.Errorf("kafka: topic %s: %w", dead.Topic, err)
	}
	made, err := c.ensure(ctx, admin, t)
	if err != nil {
		return nil, fmt.Errorf("kafka: topic %s: %w", c.Topic, err)
	}
	return []Migrated{{c.Topic, made}, {dead.Topic, letters}}, nil
}

// ensure makes the topic of c, or looks whether it is as it should be.
func (c Config) ensure(ctx context.Context, admin *kadm.Client, t Topic) (made bool, err error) {
	brokers, err := admin.ListBrokers(ctx)
	switch {
	case errors.As(err, new(*kerr.Error)):
		return false, err
	case err != nil:
		return false, fmt.Errorf("%w: %w", ErrSilent, err)
	}
	replicas, insync := int16(1), "1"
	if len(brokers) >= 3 {
		replicas, insync = 3, "2"
	}
	// A click of a clock that was wrong would otherwise keep all behind it until its time comes.
	ahead := strconv.FormatInt(math.MaxInt64, 10)
	retention, policy := strconv.FormatInt(cmp.Or(t.Retention, 7*24*time.Hour).Milliseconds(), 10), "delete"
	_, err = admin.CreateTopic(ctx, int32(cmp.Or(t.Partitions, 12)), replicas, map[string]*string{
		"retention.ms": &retention, "cleanup.policy": &policy, "min.insync.replicas": &insync,
		"message.timestamp.after.max.ms": &ahead,
	}, c.Topic)
	made = err == nil
	if !made && !errors.Is(err, kerr.TopicAlreadyExists) {
		return false, err
	}
	topics, err := known(ctx, admin, c.Topic)
	if err != nil {
		return made, err
	}
	if n := len(topics[c.Topic].Partitions); t.Partitions != 0 && n != t.Partitions {
		return made, fmt.Errorf("%w: it has %s, not %d", ErrTopic, counted(n, "partition"), t.Partitions)
	}
	if made || t.Retention == 0 {
		return made, nil
	}
	return made, sameRetention(ctx, admin, c.Topic, retention)
}

// sameRetention looks whether a topic that is there keeps records for so many milliseconds.
func sameRetention(ctx context.Context, admin *kadm.Client, topic, want string) error {
	configs, err := admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return err
	}
	c, err := configs.On(topic, nil)
	if err == nil {
		err = c.Err
	}
	for _, one := range c.Configs {
		if one.Key == "retention.ms" && one.MaybeValue() != want {
			return fmt.Errorf("%w: its retention is %s ms, not %s", ErrTopic, one.MaybeValue(), want)
		}
	}
	return err
}

// known waits until every broker that is asked may know a topic that was made: they hear of
// it one after the other.
func known(ctx context.Context, admin *kadm.Client, topic string) (kadm.TopicDetails, error) {
	for end := time.Now().Add(askBound); ; {
		topics, err := admin.ListTopics(ctx, topic)
		if err == nil {
			err = topics.Error()
		}
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return topics, err
		}
		background.Sleep(ctx, 50*time.Millisecond)
	}
}
