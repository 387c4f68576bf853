// Package rollup has the counts of links by quarter hour and day, and the contract of the
// stores that keep them ([Store]); rolluptest proves a store.
//
// Read rollup.go first, then store.go. packed.go and row.go are the form in which stores
// without columns for minutes and dimensions keep a row.
package rollup

import (
	"slices"
	"time"

	"curt/internal/clicks"
	"curt/internal/link"
)

// Counts are sums over one bucket of one link.
type Counts struct {
	Clicks    uint64 // answered with the link's own redirect, not a preview
	Humans    uint64 // those of Clicks that no bot sent
	Previews  uint64 // HEAD and prefetch answered with the link's own redirect
	Fallbacks uint64 // answered with the fallback
	Refused   uint64 // expired, disabled, blocked, warned of
}

// Add adds d to c.
func (c *Counts) Add(d Counts) {
	c.Clicks += d.Clicks
	c.Humans += d.Humans
	c.Previews += d.Previews
	c.Fallbacks += d.Fallbacks
	c.Refused += d.Refused
}

// Granularity is the width of a bucket. Its numbers are stored.
type Granularity uint8

// The stored granularities. Minutes have no rows of their own: a quarter carries
// its fifteen, which saves the write of one row per link and minute and costs
// three bytes.
const (
	Quarter Granularity = 0
	Day     Granularity = 1 // UTC
)

// Width returns the length of a bucket.
func (g Granularity) Width() time.Duration {
	if g == Day {
		return 24 * time.Hour
	}
	return 15 * time.Minute
}

// Bucket is one quarter hour or one UTC day.
type Bucket struct {
	Granularity Granularity
	Ordinal     uint32 // how many widths after the Unix epoch
}

// BucketAt returns the bucket that holds t. Times before 1970 fall into the first
// bucket and times after July 2089 into the last: a clock that is wrong must not
// break a row.
func BucketAt(g Granularity, t time.Time) Bucket {
	quarter := min(max(t.Unix()/(15*60), 0), maxQuarter)
	if g == Day {
		return Bucket{g, uint32(quarter / 96)}
	}
	return Bucket{g, uint32(quarter)}
}

// maxQuarter lets stores rely on 22 bits for quarters and 16 for days.
const maxQuarter = 1<<22 - 1

// Start returns the bucket's first moment, UTC.
func (b Bucket) Start() time.Time {
	return time.Unix(int64(b.Ordinal)*int64(b.Granularity.Width()/time.Second), 0).UTC()
}

// End returns the first moment after the bucket.
func (b Bucket) End() time.Time { return b.Start().Add(b.Granularity.Width()) }

// Minute is one minute of a quarter.
type Minute struct {
	Index  uint8 // 0 to 14
	Clicks uint64
	Humans uint64
}

// Value is one value of a dimension with its clicks.
type Value struct {
	Value  string
	Clicks uint64
	Humans uint64
}

// Rollup is everything known about one link in one bucket.
type Rollup struct {
	Counts
	Minutes    []Minute                      // by Index; only of a Quarter
	Dimensions [clicks.NumDimensions][]Value // by Value
	Visitors   Visitors
}

// Total is the sum over a link's whole life.
type Total struct {
	Counts
	FirstSeen   int64 // Unix milliseconds of the first request of any kind; 0 = none yet
	LastClicked int64 // Unix milliseconds of the last of Clicks; 0 = never
}

// Add adds d to t.
func (t *Total) Add(d Total) {
	t.Counts.Add(d.Counts)
	t.LastClicked = max(t.LastClicked, d.LastClicked)
	if t.FirstSeen == 0 || d.FirstSeen != 0 && d.FirstSeen < t.FirstSeen {
		t.FirstSeen = d.FirstSeen
	}
}

// Size estimates the memory of a roll-up.
func (r *Rollup) Size() int {
	n := 8*cap(r.Visitors.tags) + len(r.Visitors.dense) + 24*cap(r.Minutes)
	for d := range r.Dimensions {
		n += 32 * cap(r.Dimensions[d])
	}
	return n
}

// Clone returns a copy that Add may change. Values and minutes are only ever
// replaced by Add, or changed in place where they are the copy's own.
func (r *Rollup) Clone() *Rollup {
	c := *r
	c.Minutes = slices.Clone(r.Minutes)
	c.Visitors = r.Visitors.clone()
	return &c
}

// Freshness says how new the counts are.
type Freshness struct {
	Updated  time.Time // when Fold last found out what there is to count
	Complete time.Time // every kept click before it is counted; zero = not known yet
}

// LinkDay is a link on one UTC day, by days since 1970.
type LinkDay struct {
	Key link.Key
	Day uint32
}
