package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Errors of Commit.
var (
	// ErrNotYet says that nothing was committed, because members are moving partitions;
	// the same may be tried again in a moment, unless Lost was told meanwhile.
	ErrNotYet = errors.New("the group is rebalancing")

	// ErrLeave says that the partition may be another's, or that the commit may take effect
	// at any time: this membership MUST end, and with it the right of what is still on its
	// way.
	ErrLeave = errors.New("group membership ended")
)

// MaxMetadata is the most bytes that are kept with an offset: what a broker takes unless
// offset.metadata.max.bytes says otherwise.
const MaxMetadata = 4096

// Commit writes down an offset with what belongs to it, as the member that the partition was
// given to. nil means that whoever has the partition next is told exactly this, unless this
// member commits more.
//
// The request is sent once. Sent again over another connection, the first could arrive behind
// a later commit and undo it; so whoever does not know what became of one leaves the group,
// and the coordinator refuses what is still on its way, because it knows the member no more.
// For the same reason the member is that of the assignment: after a session that was lost the
// library joins as another member before it tells of its loss, and a commit by the new one
// would be taken although the partition is somebody else's. And the generation is the last one
// of which this member knows what it has: the library has a new one as soon as it has joined,
// before it is told which partitions went to others, who may have begun them.
func (g *Group) Commit(ctx context.Context, member string, partition int32, offset int64, metadata string) error {
	now, _ := g.client.GroupMetadata()
	g.mu.Lock()
	joined, generation := g.joined, g.generation
	g.mu.Unlock()
	if now != member || joined != member {
		return fmt.Errorf("kafka: commit partition %d: %w: superseded by another member", partition, ErrLeave)
	}
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Group, q.MemberID, q.Generation = g.cfg.Name, member, generation
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID = g.cfg.Topic, g.Topic
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.Metadata = partition, offset, &metadata
	t.Partitions = append(t.Partitions, p)
	q.Topics = append(q.Topics, t)
	ctx, cancel := context.WithTimeout(ctx, askBound)
	defer cancel()
	answer, err := q.RequestWith(ctx, g.commits)
	if err == nil {
		err = committed(answer)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.RebalanceInProgress), errors.Is(err, kerr.IllegalGeneration), errors.Is(err, kerr.CoordinatorLoadInProgress):
		return fmt.Errorf("kafka: commit partition %d: %w: %w", partition, ErrNotYet, err)
	}
	return fmt.Errorf("kafka: commit partition %d: %w: %w", partition, ErrLeave, err)
}

// committed returns the error of the one partition of an answer.
func committed(r *kmsg.OffsetCommitResponse) error {
	if len(r.Topics) != 1 || len(r.Topics[0].Partitions) != 1 {
		return errors.New("mismatched response")
	}
	return kerr.ErrorForCode(r.Topics[0].Partitions[0].ErrorCode)
}

// ID names one life of a topic: one that is deleted and made again has another.
type ID [16]byte

// describe finds out which topic it is, and how many partitions it has.
func (g *Group) describe(ctx context.Context) error {
	t, err := details(ctx, g.dead, g.cfg.Topic)
	if err != nil {
		return err
	}
	g.Topic, g.Partitions = ID(t.ID), len(t.Partitions)
	return nil
}
