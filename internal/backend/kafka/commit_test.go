package kafka

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// coordinator answers commits in the place of a cluster's, and keeps what it was asked.
type coordinator struct {
	mu     sync.Mutex
	asked  []kmsg.OffsetCommitRequest                     // guarded by mu
	answer func(*kmsg.OffsetCommitResponse) (bool, error) // guarded by mu; false = the cluster answers
}

// control puts the coordinator in front of a cluster.
func (c *coordinator) control(cluster *kfake.Cluster) {
	cluster.ControlKey(kmsg.OffsetCommit.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		q, ok := r.(*kmsg.OffsetCommitRequest)
		if !ok {
			return nil, nil, false
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked = append(c.asked, *q)
		a := kmsg.NewPtrOffsetCommitResponse()
		a.Version = q.Version
		for _, topic := range q.Topics {
			t := kmsg.NewOffsetCommitResponseTopic()
			t.Topic, t.TopicID = topic.Topic, topic.TopicID
			for _, partition := range topic.Partitions {
				p := kmsg.NewOffsetCommitResponseTopicPartition()
				p.Partition = partition.Partition
				t.Partitions = append(t.Partitions, p)
			}
			a.Topics = append(a.Topics, t)
		}
		handled, err := c.answer(a)
		return a, err, handled
	})
}

// says sets what commits are answered with, and forgets what was asked.
func (c *coordinator) says(answer func(*kmsg.OffsetCommitResponse) (bool, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer, c.asked = answer, nil
}

// requests returns what was asked since.
func (c *coordinator) requests() []kmsg.OffsetCommitRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

func code(e *kerr.Error) func(*kmsg.OffsetCommitResponse) (bool, error) {
	return func(a *kmsg.OffsetCommitResponse) (bool, error) {
		a.Topics[0].Partitions[0].ErrorCode = e.Code
		return true, nil
	}
}

// joined is a member of a group, with what it was given.
func joined(t *testing.T, c Config) (*Group, map[int32]Start) {
	t.Helper()
	var mu sync.Mutex
	given := map[int32]Start{}
	g, err := Join(t.Context(), GroupConfig{
		Config: c, Name: "readers", Session: time.Minute,
		Assigned: func(all []Start) map[int32]int64 {
			mu.Lock()
			defer mu.Unlock()
			from := map[int32]int64{}
			for _, s := range all {
				given[s.Partition], from[s.Partition] = s, s.Committed
			}
			return from
		},
		Lost: func([]int32, bool) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	for end := time.Now().Add(3 * time.Minute); ; {
		soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond) // there is nothing to read
		if err := g.Poll(soon, func(Fetched) {}); err != nil {
			t.Log(err) // it is tried again
		}
		cancel()
		mu.Lock()
		all := maps.Clone(given)
		mu.Unlock()
		if len(all) == g.Partitions {
			return g, all
		}
		if time.Now().After(end) {
			t.Fatalf("after three minutes the member has %d partitions", len(all))
		}
	}
}

// TestACommitIsSentOnce has the coordinator answer with everything that a commit may meet: what
// became of it is known, or this membership has to end; it is never sent again by itself.
func TestACommitIsSentOnce(t *testing.T) {
	cluster, cfg := fake(t)
	if _, err := Migrate(t.Context(), cfg, Topic{Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	c := &coordinator{}
	c.control(cluster)
	g, given := joined(t, cfg)
	member := given[0].Member
	_, generation := g.client.GroupMetadata()
	for name, tt := range map[string]struct {
		answer func(*kmsg.OffsetCommitResponse) (bool, error)
		want   error
	}{
		"done":                   {func(*kmsg.OffsetCommitResponse) (bool, error) { return true, nil }, nil},
		"members move":           {code(kerr.RebalanceInProgress), ErrNotYet},
		"another generation":     {code(kerr.IllegalGeneration), ErrNotYet},
		"the group is loaded":    {code(kerr.CoordinatorLoadInProgress), ErrNotYet},
		"no member":              {code(kerr.UnknownMemberID), ErrLeave},
		"fenced":                 {code(kerr.FencedInstanceID), ErrLeave},
		"another coordinator":    {code(kerr.NotCoordinator), ErrLeave},
		"no coordinator":         {code(kerr.CoordinatorNotAvailable), ErrLeave},
		"it took too long":       {code(kerr.RequestTimedOut), ErrLeave},
		"too much beside it":     {code(kerr.OffsetMetadataTooLarge), ErrLeave},
		"a connection that ends": {func(*kmsg.OffsetCommitResponse) (bool, error) { return true, errors.New("cut") }, ErrLeave},
		"of no topic": {func(a *kmsg.OffsetCommitResponse) (bool, error) {
			a.Topics = nil
			return true, nil
		}, ErrLeave},
		"of no partition": {func(a *kmsg.OffsetCommitResponse) (bool, error) {
			a.Topics[0].Partitions = nil
			return true, nil
		}, ErrLeave},
	} {
		c.says(tt.answer)
		err := g.Commit(t.Context(), member, 0, 7, "beside it")
		if !errors.Is(err, tt.want) || errors.Is(err, ErrNotYet) && errors.Is(err, ErrLeave) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		all := c.requests()
		if len(all) != 1 {
			t.Errorf("%s: sent %d times", name, len(all))
			continue
		}
		if q := all[0]; q.Group != "readers" || q.MemberID != member || q.Generation != generation || len(q.Topics) != 1 || len(q.Topics[0].Partitions) != 1 {
			t.Errorf("%s: %+v", name, q)
		} else if p := q.Topics[0].Partitions[0]; p.Partition != 0 || p.Offset != 7 || p.Metadata == nil || *p.Metadata != "beside it" {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestNobodyElseCommits asks for commits by members that this client is not, or is no more, and
// by nobody who waits: the coordinator hears of none.
func TestNobodyElseCommits(t *testing.T) {
	cluster, cfg := fake(t)
	if _, err := Migrate(t.Context(), cfg, Topic{Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	c := &coordinator{}
	c.control(cluster)
	c.says(func(*kmsg.OffsetCommitResponse) (bool, error) { return true, nil })
	g, given := joined(t, cfg)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"another member": g.Commit(t.Context(), "another", 0, 7, ""),
		"no member":      g.Commit(t.Context(), "", 0, 7, ""),
		"nobody waits":   g.Commit(gone, given[0].Member, 0, 7, ""),
	} {
		if !errors.Is(err, ErrLeave) || errors.Is(err, ErrNotYet) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all := c.requests(); len(all) != 0 {
		t.Errorf("sent: %+v", all)
	}
	if off := g.client.OptValue(kgo.DisableAutoCommit); off != true { // which would begin after five seconds
		t.Errorf("the client commits what was read by itself: %v", off)
	}
}

// TestTheNextMemberIsToldWhatWasCommitted commits as one member and begins as another.
func TestTheNextMemberIsToldWhatWasCommitted(t *testing.T) {
	_, cfg := fake(t)
	if _, err := Migrate(t.Context(), cfg, Topic{Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	first, given := joined(t, cfg)
	for p, s := range given {
		if s.Committed != -1 || s.Metadata != "" {
			t.Errorf("partition %d begins with %+v", p, s)
		}
	}
	if err := first.Commit(t.Context(), given[1].Member, 1, 0, "of one"); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	_, given = joined(t, cfg)
	if s := given[0]; s.Committed != -1 || s.Metadata != "" {
		t.Errorf("partition 0 begins with %+v", s)
	}
	if s := given[1]; s.Committed != 0 || s.Metadata != "of one" {
		t.Errorf("partition 1 begins with %+v", s)
	}
}

// TestNobodyCommitsBeforeItIsToldWhatItHas has a second member join, and the first commit when it
// has joined the new generation and was not told yet what went to the other: the generation of
// that commit is the one before, which the coordinator refuses.
func TestNobodyCommitsBeforeItIsToldWhatItHas(t *testing.T) {
	cluster, cfg := fake(t)
	if _, err := Migrate(t.Context(), cfg, Topic{Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	c := &coordinator{}
	c.control(cluster)
	c.says(func(*kmsg.OffsetCommitResponse) (bool, error) { return true, nil })
	g, given := joined(t, cfg)
	member, before := g.client.GroupMetadata()
	told := make(chan struct{})
	cluster.ControlKey(kmsg.SyncGroup.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if q, ok := r.(*kmsg.SyncGroupRequest); ok && q.MemberID == member {
			cluster.SleepControl(func() { <-told })
		}
		return nil, nil, false
	})
	second, err := Join(t.Context(), GroupConfig{
		Config: cfg, Name: "readers", Session: time.Minute,
		Assigned: func([]Start) map[int32]int64 { return nil }, Lost: func([]int32, bool) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = second.Close() })
	for end := time.Now().Add(3 * time.Minute); ; {
		soon, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_ = g.Poll(soon, func(Fetched) {}) // which lets the group move partitions
		cancel()
		if _, now := g.client.GroupMetadata(); now > before {
			break
		}
		if time.Now().After(end) {
			t.Fatal("after three minutes there is no new generation")
		}
	}
	if err := g.Commit(t.Context(), given[0].Member, 0, 7, ""); err != nil {
		t.Errorf("the coordinator took it, and the member says %v", err)
	}
	close(told)
	if all := c.requests(); len(all) != 1 || all[0].Generation != before {
		t.Errorf("sent %+v, want the generation %d", all, before)
	}
}
