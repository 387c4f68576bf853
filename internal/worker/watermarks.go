package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/backend/kafka"
	"curt/internal/repeatlog"
)

// tellEvery is how often a worker says how far it has come.
const tellEvery = time.Second

// voice is what an instance has promised in a partition.
type voice struct {
	first, watermark int64 // Unix milliseconds; the least and the most
	at               int64 // when it was heard of last
	told             bool
}

// tell says up to when clicks are complete, once a second. What it says is true whoever has
// the partitions meanwhile: it is of what is in the store.
func (s *session) tell(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		asked := time.Now()
		ends, err := s.group.Ends(ctx)
		if errors.Is(err, kafka.ErrRemade) { // what is said from now on is of another topic
			s.end(err)
			return
		}
		parts := s.all()
		if err == nil {
			s.measure(parts, ends, asked) // the store may keep us waiting
			err = s.advance(ctx, parts, ends, asked)
		}
		if errors.Is(err, kafka.ErrLeave) { // the store is another one
			s.end(err)
			return
		}
		if ctx.Err() != nil {
			return
		}
		s.note(err)
	}
}

// advance tells the store how far partitions have come.
func (s *session) advance(ctx context.Context, parts []*partition, ends map[int32]int64, asked time.Time) error {
	var marks []watermarks.Watermark
	for _, p := range parts {
		if err := p.look(ctx, asked); err != nil {
			return err
		}
		marks = append(append(marks, p.marks()...), p.through(ends[p.number], asked)...)
	}
	if err := s.cfg.Store.Advance(ctx, marks); err != nil {
		return err
	}
	for _, p := range parts {
		p.toldAll(marks)
	}
	return nil
}

// measure keeps how much waits for whoever asks.
func (s *session) measure(parts []*partition, ends map[int32]int64, asked time.Time) {
	records := uint64(0)
	for _, p := range parts {
		records += p.behind(ends[p.number])
	}
	w := s.Worker
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lag.records, w.lag.asked = records, asked
}

// note keeps whether Kafka and the store answer.
func (s *session) note(err error) {
	w := s.Worker
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && w.lag.err == nil {
		s.cfg.Logger.WarnContext(s.life, "writing the watermark failed, retrying", slog.Any("err", err))
	}
	w.lag.err = err
}

// behind returns how many records of the partition are not in the store.
func (p *partition) behind(end int64) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return uint64(max(0, end-max(0, p.inserted)))
}

// look notes that the partition is looked at, and has those excused who could not be heard
// while it was not. What counts are clocks on walls: the other one stands still with the machine.
func (p *partition) look(ctx context.Context, asked time.Time) error {
	if gap := asked.Round(0).Sub(p.looked.Round(0)); gap > watermarks.Unread {
		if err := p.cfg.Store.ForgiveOutage(ctx, p.topic(), uint32(p.number), asked); err != nil {
			return err
		}
	}
	p.looked = asked
	return nil
}

// topic is what the topic is called in the store.
func (p *partition) topic() string { return p.token[:len(p.session.token)] }

// mark is one about an instance, with the rest to be filled in.
func (p *partition) mark(instance uint64) watermarks.Watermark {
	return watermarks.Watermark{Topic: p.topic(), Partition: uint32(p.number), Partitions: uint32(p.group.Partitions), Instance: instance}
}

// through is up to when the partition, which ended at an offset when that was asked, was looked
// at; nothing while that is not known.
func (p *partition) through(end int64, asked time.Time) []watermarks.Watermark {
	p.mu.Lock()
	defer p.mu.Unlock()
	through := p.newest
	if max(0, p.inserted) >= end || through.After(asked) { // a clock ahead would make others gone
		through = asked
	}
	if through.IsZero() {
		return nil
	}
	m := p.mark(0)
	m.First, m.Watermark, m.LastContact = through.UnixMilli(), through.UnixMilli(), through.UnixMilli()
	return []watermarks.Watermark{m}
}

// marks are what is new of the instances in a partition.
func (p *partition) marks() (all []watermarks.Watermark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for instance, v := range p.heard {
		if v.told {
			continue
		}
		m := p.mark(instance)
		m.First, m.Watermark, m.LastContact = v.first, v.watermark, v.at
		all = append(all, m)
	}
	return all
}

// toldAll notes which of what was said is still new.
func (p *partition) toldAll(marks []watermarks.Watermark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range marks {
		if v := p.heard[m.Instance]; m.Partition == uint32(p.number) && v != nil && v.watermark == m.Watermark && v.at == m.LastContact {
			v.told = true
		}
	}
}

// tellEnds tells of instances that have ended, before a block is committed: those before it
// are not read again by whoever has the partition next, and an instance says this once. Nothing is
// committed before the store has taken it, or what a sender holds would be held for good.
func (p *partition) tellEnds(ctx context.Context) error {
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	if !ended {
		return nil
	}
	marks := p.marks()
	var failing repeatlog.Condition
	for wait := waitFirst; ; wait = min(2*wait, waitMost) {
		err := p.cfg.Store.Advance(ctx, marks)
		if err == nil {
			break
		}
		if errors.Is(err, kafka.ErrLeave) {
			return err
		}
		failing.Log(ctx, time.Now(), p.log, slog.LevelWarn, "storing stopped senders failed, clicks wait in kafka", err)
		if err := pause(p.open, wait); err != nil {
			return err
		}
	}
	p.toldAll(marks)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = false
	return nil
}

var errSilent = errors.New("no result for too long")

// Healthy returns nil while Kafka and the store answer. It does no I/O.
func (w *Worker) Healthy() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.lag.err != nil:
		return w.lag.err
	case time.Since(w.lag.asked) > 15*tellEvery:
		return errSilent
	}
	return nil
}
