package watermarks

import (
	"maps"
	"slices"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/ship"
)

// ProgressOf adds up what is known at now of all lives of topics, of which newest is the present
// one, and of the senders.
//
// Clicks are complete up to the least time that any instance holds them to, and never up to a time
// that is to come. A sender holds them until it has ended, or an operator says that it be
// forgotten and nothing is heard of it after that; an instance that is no sender's, until it is
// gone: one of an earlier release, or that could not be written down.
func ProgressOf(marks []Watermark, newest string, senders []ship.Sender, now time.Time) (p Progress) {
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
		p.Senders = append(p.Senders, SenderProgress{Sender: s, Until: momentOf(i.until), LastContact: momentOf(i.heard), Ended: i.ended, Gone: i.gone})
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

// topicLife is what is known of one life of a topic. A topic that is deleted and made anew has
// another one, with other offsets and nothing of what was said before.
type topicLife struct {
	partitions uint32
	through    map[uint32]int64 // by partition: up to when it was looked at
	voices     map[uint64]*instance
}

// lives are those of all topics that anybody has told of.
type lives map[string]*topicLife

// livesOf sorts what is known at now. What was read by a clock that was ahead was read now.
func livesOf(marks []Watermark, now time.Time) lives {
	all := lives{}
	for _, m := range marks {
		l := all[m.Topic]
		if l == nil {
			l = &topicLife{through: map[uint32]int64{}, voices: map[uint64]*instance{}}
			all[m.Topic] = l
		}
		l.partitions = max(l.partitions, m.Partitions)
		if m.Instance == 0 {
			l.through[m.Partition] = min(m.Watermark, now.UnixMilli())
			continue
		}
		i := l.voices[m.Instance]
		if i == nil {
			i = &instance{in: map[uint32]Watermark{}, first: m.First}
			l.voices[m.Instance] = i
		}
		i.in[m.Partition], i.first, i.heard = m, min(i.first, m.First), max(i.heard, m.LastContact)
	}
	return all
}

// updated is up to when every partition was looked at; known says that somebody has told of all.
func (l *topicLife) updated() (ms int64, known bool) {
	if l == nil || l.partitions == 0 || len(l.through) < int(l.partitions) {
		return 0, false
	}
	return slices.Min(slices.Collect(maps.Values(l.through))), true
}

// instances are those that gave a promise in some life, in order.
func (all lives) instances() []uint64 {
	ids := map[uint64]bool{}
	for _, l := range all {
		for id := range l.voices {
			ids[id] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// instance is what is known of an instance in a life of the topic.
type instance struct {
	in    map[uint32]Watermark // by partition
	first int64
	heard int64 // of it anywhere
}

// reach is how far the clicks of an instance have come.
type reach struct {
	known  bool  // it gave a promise
	newest bool  // in the newest life of the topic
	until  int64 // all of its clicks before are there; clicks.Ended = all that it ever made
	heard  int64 // when it gave its last promise
	ended  bool
	gone   bool
}

// find returns how far an instance has come. What it said in the newest life of the topic counts; if
// it said nothing there yet, what it said last in an earlier one does, so that one that has not
// noticed yet that the topic is another, or has died before, is not passed over. One that has
// ended in any life makes no more clicks. updated is up to when the newest life was looked at.
func (all lives) find(id uint64, newest string, updated int64) (last reach) {
	for topic, l := range all {
		i := l.voices[id]
		if i == nil {
			continue
		}
		r := l.reach(i)
		if r.ended {
			return r
		}
		if topic != newest {
			r.gone = updated-r.heard >= GoneAfter.Milliseconds()
		}
		if r.newest = topic == newest; !last.newest && (r.newest || !last.known || r.heard > last.heard) {
			last = r
		}
	}
	return last
}

// reach is how far an instance has come by what it said in this life.
//
// An instance that has not been heard of in a partition in which others have is held to the first
// promise that it gave anywhere. It has ended where it said so in every partition, and is gone
// once each of the others was read to a time that is [GoneAfter] after it was heard of there; a
// partition that is not read makes nobody gone, then or later ([Table.ForgiveOutage]).
func (l *topicLife) reach(i *instance) reach {
	r := reach{known: true, until: clicks.Ended, heard: i.heard, gone: true}
	for partition := range l.partitions {
		m, heard := i.in[partition]
		switch {
		case !heard:
			r.until = min(r.until, i.first)
			m.LastContact = i.heard
		case m.Watermark == clicks.Ended:
			continue
		default:
			r.until = min(r.until, m.Watermark)
		}
		if l.through[partition]-m.LastContact < GoneAfter.Milliseconds() {
			r.gone = false
		}
	}
	r.ended = r.until == clicks.Ended
	r.gone = r.gone && !r.ended
	return r
}
