package worker

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"curt/internal/backend/kafka"
	"curt/internal/clicks"
	"curt/internal/repeatlog"
)

// closingTime is how long a block may take that is being inserted when its partition is to
// go to another worker; what takes longer is inserted by that one.
const closingTime = 5 * time.Second

// session is one membership in the group: it ends with the worker, or when what it committed
// may be another's.
type session struct {
	*Worker

	ready chan struct{} // closed when the next two are set
	group *kafka.Group
	token string // what all tokens of the topic begin with

	life context.Context // of the partitions
	end  context.CancelCauseFunc

	mu     sync.Mutex
	parts  map[int32]*partition // guarded by mu
	closed bool                 // guarded by mu: partitions that come are left alone
}

// session joins the group and works until ctx ends or the membership has to.
func (w *Worker) session(ctx context.Context) (err error) {
	s := &session{Worker: w, ready: make(chan struct{}), parts: map[int32]*partition{}}
	s.life, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	defer s.end(nil)
	s.group, err = kafka.Join(ctx, kafka.GroupConfig{
		Config: w.cfg.Kafka, Name: w.cfg.Group, Session: w.cfg.Session, Assigned: s.assigned, Lost: s.lost,
	})
	if err != nil {
		return err
	}
	s.token = topicName(w.cfg.Kafka, s.group.Topic)
	close(s.ready)
	w.current(s)
	defer w.current(nil)
	var told sync.WaitGroup
	telling, stopTelling := context.WithCancel(ctx)
	told.Go(func() { s.tell(telling) })
	err = s.poll(ctx)
	stopTelling()
	told.Wait()
	s.close()
	return errors.Join(err, s.group.Close())
}

// topicName is what a life of a topic is called in the store.
func topicName(c kafka.Config, life kafka.ID) string {
	return c.Topic + "/" + hex.EncodeToString(life[:])
}

// poll brings what is read to the partitions.
func (s *session) poll(ctx context.Context) error {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	var failing repeatlog.Condition
	for ctx.Err() == nil {
		err := s.group.Poll(reading, s.dispatch)
		if s.life.Err() != nil {
			return context.Cause(s.life)
		}
		if err != nil && ctx.Err() == nil {
			if again, due := failing.Met(time.Now()); due {
				s.cfg.Logger.WarnContext(ctx, "clicks wait in Kafka: it cannot be read", slog.Any("err", err), again)
			}
			_ = pause(reading, waitFirst) // the loop sees it
		} else if sum, due := failing.Over(time.Now()); due {
			s.cfg.Logger.InfoContext(ctx, "Kafka can be read again", sum)
		}
	}
	return nil
}

// dispatch gives a partition what was read of it.
func (s *session) dispatch(f kafka.Fetched) {
	s.mu.Lock()
	p := s.parts[f.Partition]
	s.mu.Unlock()
	if p != nil && p.queue.put(f.Records) {
		s.group.Pause(f.Partition)
	}
}

// assigned begins partitions where somebody left them.
func (s *session) assigned(starts []kafka.Start) map[int32]int64 {
	<-s.ready // the first may come before Join returns
	from := map[int32]int64{}
	for _, start := range starts {
		s.lost([]int32{start.Partition}, true) // of an assignment that did not come to its end
		p := s.partition(start)
		from[start.Partition] = p.reader.at
		s.mu.Lock()
		if !s.closed {
			s.group.Resume(start.Partition) // it may have been lost while it was paused
			s.parts[start.Partition] = p
			s.begin(p)
		}
		s.mu.Unlock()
	}
	return from
}

// partition makes a partition that begins where its block was begun that was committed last.
func (s *session) partition(start kafka.Start) *partition {
	number := start.Partition
	p := &partition{
		session: s, number: number, member: start.Member, token: fmt.Sprintf("%s:%d", s.token, number),
		from: start.Committed, with: start.Metadata, done: make(chan struct{}), heard: map[uint64]*voice{},
		log: s.cfg.Logger.With(slog.Int("partition", int(number))),
	}
	p.queue = newQueue(func() { s.group.Resume(number) })
	p.reader = reader{at: start.Committed, seen: seen{}, bots: clicks.NewBotList(), stats: s.stats, all: s.cfg.countAgain}
	if start.Committed >= 0 {
		was, err := decodeProgress(start.Metadata, start.Committed)
		if err != nil {
			p.log.WarnContext(s.life, "somebody else has set the offset; clicks that Kafka has twice near it may count twice",
				slog.Int64("offset", start.Committed))
		} else {
			p.reader.at, p.reader.seen = was.first, was.before
		}
	}
	p.inserted = p.reader.at
	return p
}

// begin runs a partition. The caller holds mu.
func (s *session) begin(p *partition) {
	var ctx context.Context
	ctx, p.kill = context.WithCancel(s.life)
	p.open, p.shut = context.WithCancelCause(ctx)
	go func() { // ends with lost or close
		defer close(p.done)
		err := p.run(ctx)
		if p.open.Err() == nil { // nobody asked it to end
			s.end(fmt.Errorf("partition %d: %w", p.number, err))
		}
	}()
}

// lost ends partitions, and returns when nothing more is committed for them. Unless others may
// have them already, blocks that are being inserted may become whole.
func (s *session) lost(numbers []int32, gone bool) {
	var ending []*partition
	s.mu.Lock()
	for _, n := range numbers {
		if p := s.parts[n]; p != nil {
			ending = append(ending, p)
			delete(s.parts, n)
		}
	}
	s.mu.Unlock()
	for _, p := range ending {
		p.shut(errGivenAway)
	}
	late := time.NewTimer(closingTime)
	defer late.Stop()
	for _, p := range ending {
		if !gone {
			select {
			case <-p.done:
			case <-late.C:
				gone = true
			}
		}
		p.kill()
	}
	for _, p := range ending {
		<-p.done
	}
}

// close ends all partitions.
func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	numbers := slices.Collect(maps.Keys(s.parts))
	s.mu.Unlock()
	s.lost(numbers, s.life.Err() != nil)
}

// all returns the partitions as they are now.
func (s *session) all() []*partition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.parts))
}

// has reports whether a partition is this member's.
func (s *session) has(number int32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parts[number] != nil
}
