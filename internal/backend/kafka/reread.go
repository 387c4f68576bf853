package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Passed is what a group has read of a partition and Kafka still has.
type Passed struct {
	Partition int32
	Low       int64  // what Kafka has begins here
	First     int64  // the first record whose time is not before what was asked for; not below Low
	Committed int64  // what the group has read ends here; -1 = it has committed nothing
	Metadata  string // what was committed with it
}

// Size is how many offsets there are to be read.
func (p Passed) Size() int64 { return max(0, p.Committed-p.First) }

// ErrSilent says that nothing could be asked, or read for too long.
var ErrSilent = errors.New("no response from Kafka")

// silentFor is how long Again waits for records that are there.
const silentFor = time.Minute

// Reread reads once more what a group has read. The group does not notice. Close releases it.
type Reread struct {
	Topic      ID // of the life of the topic
	Partitions int

	cfg   Config
	admin *kgo.Client
}

// OpenReread looks for the topic; its error may be ErrNoTopic or ErrSilent.
func OpenReread(ctx context.Context, c Config) (*Reread, error) {
	client, err := kgo.NewClient(c.options()...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	a := &Reread{cfg: c, admin: client}
	t, err := details(ctx, client, c.Topic)
	if err != nil {
		client.Close()
		if !errors.Is(err, ErrNoTopic) && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", ErrSilent, err)
		}
		return nil, err
	}
	a.Topic, a.Partitions = ID(t.ID), len(t.Partitions)
	return a, nil
}

// Close closes the connections.
func (a *Reread) Close() { a.admin.Close() }

// Passed returns what the group has read of each partition, from the first record that is not
// older than a time.
func (a *Reread) Passed(ctx context.Context, group string, from time.Time) ([]Passed, error) {
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	admin := kadm.NewClient(a.admin)
	committed, err := admin.FetchOffsetsForTopics(ctx, group, a.cfg.Topic)
	if err == nil {
		err = committed.Error()
	}
	if errors.Is(err, kerr.GroupIDNotFound) { // it has not committed anything yet
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("kafka: read the offsets of group %s: %w: %w", group, ErrSilent, err)
	}
	low, err := listed(admin.ListStartOffsets(ctx, a.cfg.Topic))
	if err != nil {
		return nil, fmt.Errorf("kafka: read the start offsets of %s: %w: %w", a.cfg.Topic, ErrSilent, err)
	}
	first, err := listed(admin.ListOffsetsAfterMilli(ctx, from.UnixMilli(), a.cfg.Topic))
	if err != nil {
		return nil, fmt.Errorf("kafka: read the offsets of %s at %s: %w: %w", a.cfg.Topic, from.Format(time.RFC3339), ErrSilent, err)
	}
	all := make([]Passed, a.Partitions)
	for i := range all {
		number := int32(i)
		all[i] = Passed{Partition: number, Low: low[number], First: max(low[number], first[number]), Committed: -1}
		if o, ok := committed.Lookup(a.cfg.Topic, number); ok && o.At >= 0 {
			all[i].Committed, all[i].Metadata = o.At, o.Metadata
		}
	}
	return all, nil
}

// Ends returns where the partitions end: the offset of the next record of each. The error is
// [ErrRemade] where the topic is no longer the one that was opened.
func (a *Reread) Ends(ctx context.Context) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	ends, err := listed(kadm.NewClient(a.admin).ListEndOffsets(ctx, a.cfg.Topic))
	if err != nil {
		return nil, fmt.Errorf("kafka: read the end offsets of %s: %w: %w", a.cfg.Topic, ErrSilent, err)
	}
	t, err := details(ctx, a.admin, a.cfg.Topic) // afterwards: what was listed is of this life if it still lives
	if err == nil && ID(t.ID) != a.Topic {
		err = fmt.Errorf("kafka: read the end offsets of %s: %w", a.cfg.Topic, ErrRemade)
	}
	return ends, err
}

// listed returns offsets by partition.
func listed(l kadm.ListedOffsets, err error) (map[int32]int64, error) {
	if err == nil {
		err = l.Error()
	}
	if err != nil {
		return nil, err
	}
	offsets := map[int32]int64{}
	l.Each(func(o kadm.ListedOffset) { offsets[o.Partition] = o.Offset })
	return offsets, nil
}

// Read calls f with each record of a partition from an offset on and before another, in order.
// What Kafka gives up meanwhile is left out. An error of f ends it and is returned. Of records
// that are there it holds a few megabytes at a time.
func (a *Reread) Read(ctx context.Context, partition int32, from, before int64, f func(*kgo.Record) error) error {
	if from >= before {
		return nil
	}
	client, err := kgo.NewClient(append(a.cfg.options(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{a.cfg.Topic: {partition: kgo.NewOffset().At(from)}}),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), // of what Kafka no longer has
		kgo.FetchMaxBytes(fetchBytes), kgo.FetchMaxPartitionBytes(fetchBytes/4), kgo.FetchMaxWait(500*time.Millisecond),
	)...)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	defer client.Close()
	for heard := time.Now(); ; {
		records, err := some(ctx, client)
		if err != nil {
			return fmt.Errorf("kafka: read partition %d of %s: %w", partition, a.cfg.Topic, err)
		}
		for _, r := range records {
			if r.Offset >= before {
				return nil
			}
			if r.Offset < from { // Kafka's answer begins where its batch does
				continue
			}
			if err := f(r); err != nil {
				return err
			}
			if r.Offset == before-1 {
				return nil
			}
		}
		if len(records) > 0 {
			heard = time.Now()
			continue
		}
		switch low, err := listed(kadm.NewClient(a.admin).ListStartOffsets(ctx, a.cfg.Topic)); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && low[partition] >= before:
			return nil
		case time.Since(heard) > silentFor:
			return fmt.Errorf("kafka: read partition %d of %s: %w", partition, a.cfg.Topic, errors.Join(ErrSilent, err))
		}
	}
}

// some returns what was read next, or nothing after a second.
func some(ctx context.Context, client *kgo.Client) ([]*kgo.Record, error) {
	waiting, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	fetches := client.PollFetches(waiting)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var failed error
	fetches.EachError(func(_ string, _ int32, err error) {
		if !errors.Is(err, context.DeadlineExceeded) {
			failed = err
		}
	})
	return fetches.Records(), failed
}
