// Package recount counts a click log anew, without the help of what Fold stored, for curt
// doctor.
package recount

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/rollup"
)

// Result is what the click log says, without the help of what Fold has stored.
type Result struct {
	Days       map[rollup.LinkDay]rollup.Counts // Humans is 0: who is a bot is a matter of the release that counts
	Events     uint64                           // of all days
	Waiting    uint64                           // events behind the place up to which Days counts
	Damages    []*clicklog.DamageError          // but for a torn end
	Torn       bool                             // the newest segment ends in part of a block, as after a power cut or while one is written
	Latest     time.Time                        // of all events; zero = none
	OneAddress OneAddress                       // the newest of all events that came from one address
	End        clicklog.Position                // where the log ends
}

// Oldest returns when the oldest block of a folder's log begins; ok is false when
// there is none that can be read.
func Oldest(dir string) (at time.Time, ok bool, err error) {
	r, err := clicklog.ReadDir(dir, clicklog.Position{})
	if err != nil {
		return time.Time{}, false, err
	}
	defer r.Close()
	b, err := r.NextGood(func(*clicklog.DamageError) {})
	if errors.Is(err, io.EOF) {
		return time.Time{}, false, nil
	}
	return time.UnixMilli(b.Earliest).UTC(), err == nil, err
}

// Dir counts the log of a folder anew, from the segments on that may hold a
// click of the day first, and counts into Days what lies before upTo. It checks every
// checksum on its way. progress is called now and then with the bytes read, of all.
func Dir(ctx context.Context, dir string, first uint32, upTo clicklog.Position, progress func(done, all int64)) (Result, error) {
	r, err := clicklog.TakeSnapshot(dir, time.Unix(int64(first)*24*60*60, 0), upTo)
	if err != nil {
		return Result{}, err
	}
	defer r.Close()
	c := recounter{first: first, days: map[string]*rollup.Counts{}, result: Result{Torn: r.Torn, Damages: r.Missing}}
	done := int64(0)
	for n := 0; ; n++ {
		b, err := r.NextGood(func(d *clicklog.DamageError) { c.result.Damages = append(c.result.Damages, d) })
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return Result{}, err
		}
		c.block(&b, b.At.Compare(upTo) < 0)
		done += b.Next.Offset - b.At.Offset
		if n%256 == 0 {
			progress(done, r.Bytes)
		}
	}
	c.result.End, c.result.OneAddress = r.Position(), c.alone.now
	c.result.Days = make(map[rollup.LinkDay]rollup.Counts, len(c.days))
	for key, counts := range c.days {
		c.result.Days[rollup.LinkDay{Key: clicklog.LinkKey([]byte(key[4:])), Day: binary.BigEndian.Uint32([]byte(key))}] = *counts
	}
	return c.result, nil
}

type recounter struct {
	first  uint32
	days   map[string]*rollup.Counts // by day, big-endian, and the log's key
	name   []byte
	alone  oneAddressCounter
	result Result
}

// block adds a block; counted is false for one that Fold has not come to.
func (c *recounter) block(b *clicklog.Block, counted bool) {
	c.result.Events += uint64(b.Count)
	c.alone.block(b)
	if latest := time.UnixMilli(b.Latest).UTC(); latest.After(c.result.Latest) {
		c.result.Latest = latest
	}
	if !counted {
		c.result.Waiting += uint64(b.Count)
	}
	_ = b.Events(func(e *clicklog.Event) error { // Fold counts a block up to a record that does not fit, and so do we
		c.alone.event(e)
		if !counted {
			return nil
		}
		day := rollup.BucketAt(rollup.Day, time.UnixMilli(e.Time)).Ordinal
		if day >= c.first {
			c.event(day, e)
		}
		return nil
	})
}

// event counts as aggregate.add does, and is written apart from it, to find its
// mistakes.
func (c *recounter) event(day uint32, e *clicklog.Event) {
	key := e.Key
	if e.Outcome == clicks.Orphan {
		key = nil
	}
	c.name = append(binary.BigEndian.AppendUint32(c.name[:0], day), key...)
	counts := c.days[string(c.name)]
	if counts == nil {
		counts = new(rollup.Counts)
		c.days[string(c.name)] = counts
	}
	visited := e.Outcome == clicks.Redirected || e.Outcome == clicks.Orphan
	switch {
	case e.Preview() && visited:
		counts.Previews++
	case e.Preview():
	case visited:
		counts.Clicks++
	case e.Outcome == clicks.FellBack:
		counts.Fallbacks++
	case e.Outcome == clicks.Refused:
		counts.Refused++
	}
}

// OneAddress is the newest clicks of a log, back to the first that came from another address
// than they did. Whether the addresses of two runs of a server differ is unknown:
// they are taken for one.
type OneAddress struct {
	Clicks uint64
	Agents int // distinct user agents among them on one day, counted up to MaxAgents
	Since  time.Time
}

// MaxAgents is how many user agents of OneAddress is counted: far more than one person has.
const MaxAgents = 20

// oneAddressCounter follows a log's blocks to its end.
type oneAddressCounter struct {
	now      OneAddress
	instance uint64
	day      int64
	agents   map[uint64]bool // of the day, by the tags of visitors
}

func (a *oneAddressCounter) block(b *clicklog.Block) {
	goes := b.Origin&clicklog.SameAddress != 0 || b.Origin&clicklog.OneAddress != 0 && b.First.Instance != a.instance
	a.instance = b.First.Instance
	if !goes || a.now.Clicks == 0 {
		a.now, a.agents = OneAddress{Since: time.UnixMilli(b.Earliest).UTC()}, map[uint64]bool{}
	}
	if b.Origin&clicklog.OneAddress != 0 {
		a.now.Clicks += uint64(b.Count)
	}
}

// event counts visitors: on one day and from one address they are user agents, and what is
// kept of those tells few apart. Without the day's key there are none.
func (a *oneAddressCounter) event(e *clicklog.Event) {
	if a.now.Clicks == 0 || e.Visitor == 0 || a.now.Agents >= MaxAgents {
		return
	}
	if day := e.Time / (24 * time.Hour).Milliseconds(); day != a.day {
		a.day, a.agents = day, map[uint64]bool{}
	}
	a.agents[e.Visitor] = true
	a.now.Agents = max(a.now.Agents, len(a.agents))
}
