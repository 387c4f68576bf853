package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"curt/internal/clicks"
)

// GoneAfter is how long an instance may give no promise, while its partition is read to its
// end, before it is called gone. Unless it is a sender's, it holds up nobody from then on.
const GoneAfter = 10 * time.Minute

// Progress is how far clicks have come.
type Progress struct {
	clicks.Freshness

	Instances int // that are known and have not ended, those that are gone among them
	// Gone are instances that have given no promise for [GoneAfter] and did not say that they
	// have ended: what they still hold may come late.
	Gone []uint64
	// Senders are those of [Config.Senders], in their order.
	Senders []SenderProgress
}

// SenderProgress is how far the clicks of a sender have come.
type SenderProgress struct {
	clicks.Sender

	Until time.Time // its clicks before are there; zero = that is not known
	Heard time.Time // of its last promise; zero = it gave none
	Ended bool      // all its clicks are there, and no more will come
	Gone  bool      // it is silent, has not ended, and nobody said that it be forgotten
}

// progress is what a Store was told last.
type progress struct {
	mu      sync.Mutex
	value   Progress
	read    time.Time
	senders []clicks.Sender
	asked   time.Time // for senders; zero = nobody could say yet
}

// progressFor is how long an answer is good: the news come once a second.
const progressFor = time.Second

// Progress says how far clicks have come that workers insert, of the topic that was heard of
// last. Both times are zero as long as nothing is known of some partition.
//
// Of the senders, what is known stays true while they cannot be asked for: who comes later holds
// no click from before. So clicks are complete up to that time at the most.
func (s *Store) Progress(ctx context.Context, now time.Time) (Progress, error) {
	if p, fresh := s.progress.at(now); fresh {
		return p, nil
	}
	ctx, cancel := ask(ctx)
	defer cancel()
	senders, asked := s.senders(ctx, now)
	marks, newest, err := s.watermarks(ctx)
	if err != nil {
		return Progress{}, fmt.Errorf("ask how far clicks have come: %w", unavailable(ctx, err))
	}
	p := progressOf(marks, newest, senders, now)
	if p.Complete.After(asked) {
		p.Complete = asked.UTC()
	}
	return s.progress.keep(p, now), nil
}

// senders asks who may hold clicks, before anybody asks how far these are: who is new then is
// not waited for, and has none from before. asked is when that was known last.
func (s *Store) senders(ctx context.Context, now time.Time) (all []clicks.Sender, asked time.Time) {
	if s.config.Senders == nil {
		return nil, now
	}
	all, err := s.config.Senders(ctx)
	s.progress.mu.Lock()
	defer s.progress.mu.Unlock()
	if err == nil {
		s.progress.senders, s.progress.asked = all, now
	}
	return s.progress.senders, s.progress.asked
}

// watermarks returns what is known of all lives of topics, and which was heard of last.
func (s *Store) watermarks(ctx context.Context) (marks []Watermark, newest string, err error) {
	rows, err := s.conn.Query(ctx, `SELECT topic, partition, instance, max(partitions), min(first), max(watermark), max(heard), max(at)
FROM watermarks GROUP BY topic, partition, instance`)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = rows.Close() }()
	var last time.Time
	for rows.Next() {
		var m Watermark
		var at time.Time
		if err := rows.Scan(&m.Topic, &m.Partition, &m.Instance, &m.Partitions, &m.First, &m.Watermark, &m.Heard, &at); err != nil {
			return nil, "", err
		}
		if marks = append(marks, m); newest == "" || at.After(last) || at.Equal(last) && m.Topic < newest {
			newest, last = m.Topic, at
		}
	}
	return marks, newest, rows.Err()
}

// at returns what was told a moment ago.
func (p *progress) at(now time.Time) (value Progress, fresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	age := now.Sub(p.read)
	return p.value, age >= 0 && age < progressFor
}

func (p *progress) keep(value Progress, now time.Time) Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.value, p.read = value, now
	return value
}

// progressOf adds up what is known at now of all lives of topics, of which newest is the present
// one, and of the senders.
//
// Clicks are complete up to the least time that any instance holds them to, and never up to a time
// that is to come. A sender holds them until it has ended, or an operator says that it be
// forgotten and nothing is heard of it after that; an instance that is no sender's, until it is
// gone: one of an earlier release, or that could not be written down.
func progressOf(marks []Watermark, newest string, senders []clicks.Sender, now time.Time) (p Progress) {
	all := livesOf(marks, now)
	updated, known := all[newest].updated()
	complete := updated
	hold := func(i reach) {
		p.Instances++
		complete = min(complete, i.until)
	}
	mine := map[uint64]bool{}
	for _, s := range senders {
		mine[s.Instance] = true
		i := all.find(s.Instance, newest, updated)
		if !i.known {
			i.until, i.gone = s.Began.UnixMilli(), updated-s.Began.UnixMilli() >= GoneAfter.Milliseconds()
		}
		forgotten := !s.Forgotten.IsZero() && i.heard <= s.Forgotten.UnixMilli()
		i.gone = known && i.gone && !i.ended && !forgotten
		p.Senders = append(p.Senders, SenderProgress{Sender: s, Until: momentOf(i.until), Heard: momentOf(i.heard), Ended: i.ended, Gone: i.gone})
		if i.ended || forgotten {
			continue
		}
		if hold(i); i.gone {
			p.Gone = append(p.Gone, s.Instance)
		}
	}
	for _, id := range all.instances() {
		if mine[id] {
			continue
		}
		switch i := all.find(id, newest, updated); {
		case i.ended:
		case i.gone:
			p.Instances++
			p.Gone = append(p.Gone, id)
		default:
			hold(i)
		}
	}
	slices.Sort(p.Gone)
	if !known {
		return Progress{Senders: p.Senders}
	}
	p.Updated, p.Complete = momentOf(updated), momentOf(complete)
	return p
}

// momentOf returns a time that is known, and the zero one of a time that nobody has told.
func momentOf(ms int64) time.Time {
	if ms <= 0 || ms == clicks.Ended {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
