package clicks

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"curt/internal/link"
)

// LinkDay is a link on one UTC day, by days since 1970.
type LinkDay struct {
	Key link.Key
	Day uint32
}

// Recount is what the click log says, without the help of what Fold has stored.
type Recount struct {
	Days    map[LinkDay]Counts // Humans is 0: who is a bot is a matter of the release that counts
	Events  uint64             // of all days
	Waiting uint64             // events behind the place up to which Days counts
	Damages []*DamageError     // but for a torn end
	Torn    bool               // the newest segment ends in part of a block, as after a power cut or while one is written
	Latest  time.Time          // of all events; zero = none
	Alone   Alone              // the newest of all events that came from one address
	End     Position           // where the log ends
}

// OldestOf returns when the oldest block of a folder's log begins; ok is false when
// there is none that can be read.
func OldestOf(dir string) (at time.Time, ok bool, err error) {
	r, err := ReadDir(dir, Position{})
	if err != nil {
		return time.Time{}, false, err
	}
	defer r.Close()
	b, err := nextGood(r, nil)
	if errors.Is(err, io.EOF) {
		return time.Time{}, false, nil
	}
	return time.UnixMilli(b.Earliest).UTC(), err == nil, err
}

// RecountDir counts the log of a folder anew, from the segments on that may hold a
// click of the day first, and counts into Days what lies before upTo. It checks every
// checksum on its way. told is called now and then with how far it has come, of all.
func RecountDir(ctx context.Context, dir string, first uint32, upTo Position, told func(done, all int64)) (Recount, error) {
	segments, err := listSegments(dir)
	if err != nil {
		return Recount{}, fmt.Errorf("read click log: %w", err)
	}
	if len(segments) == 0 {
		return Recount{Days: map[LinkDay]Counts{}}, nil
	}
	lost := missing(dir, segments, upTo)
	torn, err := leaveOutTorn(dir, segments, upTo)
	if err != nil {
		return Recount{}, err
	}
	begin := firstSegment(dir, segments, time.Unix(int64(first)*24*60*60, 0))
	var all, done int64
	for _, s := range segments {
		if s.number >= begin {
			all += s.size
		}
	}
	r := &Reader{dir: dir, pos: Position{Segment: begin}, find: func(number uint64) (segment, bool, bool) {
		return findSegment(segments, number)
	}}
	defer r.Close()
	c := recounter{first: first, days: map[string]*Counts{}, result: Recount{Torn: torn}}
	c.result.Damages = lost
	for n := 0; ; n++ {
		b, err := nextGood(r, func(d *DamageError) { c.result.Damages = append(c.result.Damages, d) })
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return Recount{}, err
		}
		c.block(&b, b.At.Compare(upTo) < 0)
		done += b.Next.Offset - b.At.Offset
		if n%256 == 0 {
			told(done, all)
		}
	}
	c.result.End, c.result.Alone = r.Position(), c.alone.now
	c.result.Days = make(map[LinkDay]Counts, len(c.days))
	for key, counts := range c.days {
		c.result.Days[LinkDay{linkKey(key[4:]), binary.BigEndian.Uint32([]byte(key))}] = *counts
	}
	return c.result, nil
}

// leaveOutTorn takes a torn end off the newest segment's size and reports whether there is
// one. What was counted had been synced, and is not torn.
func leaveOutTorn(dir string, segments []segment, counted Position) (bool, error) {
	newest := &segments[len(segments)-1]
	f, err := os.Open(filepath.Join(dir, segmentName(newest.number)))
	if gone(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read click log: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	synced := int64(0)
	if counted.Segment == newest.number {
		synced = counted.Offset
	}
	end, _, err := segmentEnd(f, f.Name(), newest.size, synced)
	if err != nil {
		return false, err
	}
	torn := end < newest.size
	newest.size = end
	return torn, nil
}

// firstSegment returns the last segment that begins well before a time; what is older
// has nothing of it. Clocks of one machine may go back by an hour and be understood.
func firstSegment(dir string, segments []segment, at time.Time) uint64 {
	first := uint64(0)
	for _, s := range segments {
		r := &Reader{dir: dir, pos: Position{Segment: s.number}, find: func(number uint64) (segment, bool, bool) {
			return findSegment([]segment{s}, number)
		}}
		b, err := r.Next()
		r.Close()
		if err == nil && time.UnixMilli(b.Earliest).After(at.Add(-time.Hour)) {
			break
		}
		first = s.number
	}
	return first
}

// nextGood is Next behind all damage, which damaged hears of.
func nextGood(r *Reader, damaged func(*DamageError)) (Block, error) {
	for {
		b, err := r.Next()
		damage, ok := errors.AsType[*DamageError](err)
		if !ok {
			return b, err
		}
		if damaged != nil {
			damaged(damage)
		}
		r.Skip()
	}
}

type recounter struct {
	first  uint32
	days   map[string]*Counts // by day, big-endian, and the log's key
	name   []byte
	alone  aloneCounter
	result Recount
}

// block adds a block; counted is false for one that Fold has not come to.
func (c *recounter) block(b *Block, counted bool) {
	c.result.Events += uint64(b.Count)
	c.alone.block(b)
	if latest := time.UnixMilli(b.Latest).UTC(); latest.After(c.result.Latest) {
		c.result.Latest = latest
	}
	if !counted {
		c.result.Waiting += uint64(b.Count)
	}
	_ = b.Events(func(e *Event) error { // Fold counts a block up to a record that does not fit, and so do we
		c.alone.event(e)
		if !counted {
			return nil
		}
		day := BucketAt(Day, time.UnixMilli(e.Time)).Ordinal
		if day >= c.first {
			c.event(day, e)
		}
		return nil
	})
}

// event counts as aggregate.add does, and is written apart from it, to find its
// mistakes.
func (c *recounter) event(day uint32, e *Event) {
	key := e.Key
	if e.Outcome == Orphan {
		key = nil
	}
	c.name = append(binary.BigEndian.AppendUint32(c.name[:0], day), key...)
	counts := c.days[string(c.name)]
	if counts == nil {
		counts = new(Counts)
		c.days[string(c.name)] = counts
	}
	visited := e.Outcome == Redirected || e.Outcome == Orphan
	switch {
	case e.Preview() && visited:
		counts.Previews++
	case e.Preview():
	case visited:
		counts.Clicks++
	case e.Outcome == FellBack:
		counts.Fallbacks++
	case e.Outcome == Refused:
		counts.Refused++
	}
}
