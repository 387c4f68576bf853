package rollup

import (
	"fmt"
	"slices"
)

// The parts of a row's number, which is of its link and bucket:
//
//	days since 1970 << 47 | the link's number in the store << 7 | slot
//
// where slot 0 is the day and 1 to 96 are its quarter hours: a batch writes to the newest
// end of a table only, and a link's day lies together.
const (
	RowDayShift  = 47
	RowLinkShift = 7
	RowSlotMask  = 1<<RowLinkShift - 1
	RowLinkMask  = 1<<(RowDayShift-RowLinkShift) - 1

	quartersPerDay = 96
)

// RowNumber returns the number of a link's row. Stores number links from 1 on, below 2^40.
func RowNumber(link int64, b Bucket) int64 {
	day, slot := int64(b.Ordinal), int64(0)
	if b.Granularity == Quarter {
		day, slot = int64(b.Ordinal)/quartersPerDay, 1+int64(b.Ordinal)%quartersPerDay
	}
	return day<<RowDayShift | (link&RowLinkMask)<<RowLinkShift | slot
}

// RowBucket returns the bucket of a row.
func RowBucket(number int64) Bucket {
	day, slot := number>>RowDayShift, number&RowSlotMask
	if slot == 0 {
		return Bucket{Granularity: Day, Ordinal: uint32(day)}
	}
	return Bucket{Granularity: Quarter, Ordinal: uint32(day*quartersPerDay + slot - 1)}
}

// RowRange is a range of numbers, both ends included.
type RowRange struct{ First, Last int64 }

// RowRanges appends the ranges that hold the rows of a link's span, in order, and none of
// others: one a day, because days of a link lie far apart.
func RowRanges(dst []RowRange, link int64, s Span) []RowRange {
	id := func(ordinal uint32) int64 {
		return RowNumber(link, Bucket{Granularity: s.Granularity, Ordinal: ordinal})
	}
	for first := int64(s.First); first <= int64(s.Last); {
		last := first
		if s.Granularity == Quarter {
			last = min(int64(s.Last), first/quartersPerDay*quartersPerDay+quartersPerDay-1)
		}
		dst = append(dst, RowRange{id(uint32(first)), id(uint32(last))})
		first = last + 1
	}
	return dst
}

// PackedRow is what stores keep of a row. An empty column is nil.
type PackedRow struct {
	Counts
	Minutes    []byte // of a quarter, or the digest of a day
	Dimensions []byte
	Visitors   []byte
}

// RowDelta is what a batch does to one row.
type RowDelta struct {
	Number   int64
	Rollup   *Rollup
	Quarters []Minute // of a day: the clicks of its quarters, by index
}

// RowDeltas appends what happened to a link, a row for each bucket. quarters is a buffer,
// which comes back longer.
func RowDeltas(dst []RowDelta, quarters []Minute, link int64, buckets []BucketDelta) ([]RowDelta, []Minute) {
	for _, b := range buckets {
		d := RowDelta{Number: RowNumber(link, b.Bucket), Rollup: b.Rollup}
		if b.Bucket.Granularity == Day {
			begin := len(quarters)
			quarters = appendQuarters(quarters, buckets, b.Bucket)
			d.Quarters = quarters[begin:len(quarters):len(quarters)]
		}
		dst = append(dst, d)
	}
	return dst, quarters
}

// appendQuarters appends the clicks of a day's quarters, by index.
func appendQuarters(dst []Minute, buckets []BucketDelta, day Bucket) []Minute {
	begin := len(dst)
	for _, q := range buckets {
		if q.Bucket.Granularity == Quarter && q.Bucket.Ordinal/quartersPerDay == day.Ordinal && q.Rollup.Clicks > 0 {
			dst = append(dst, Minute{
				Index: uint8(q.Bucket.Ordinal % quartersPerDay), Clicks: q.Rollup.Clicks, Humans: q.Rollup.Humans,
			})
		}
	}
	slices.SortFunc(dst[begin:], func(x, y Minute) int { return int(x.Index) - int(y.Index) })
	return dst
}

// Merge returns the stored row with the delta added. Its columns are parts of buf, which
// comes back longer; they stay valid when that grows.
func (d *RowDelta) Merge(buf []byte, stored PackedRow) (PackedRow, []byte, error) {
	sum := PackedRow{Counts: stored.Counts}
	sum.Add(d.Rollup.Counts)
	var err error
	column := func(grown []byte, failed error) []byte {
		if err = failed; err != nil || len(grown) == len(buf) {
			return nil
		}
		begin := len(buf)
		buf = grown
		return grown[begin:len(grown):len(grown)]
	}
	day := RowBucket(d.Number).Granularity == Day
	if !day {
		if sum.Minutes = column(MergeMinutes(buf, stored.Minutes, d.Rollup.Minutes)); err != nil {
			return sum, buf, err
		}
	}
	if sum.Dimensions = column(MergeDimensions(buf, stored.Dimensions, &d.Rollup.Dimensions)); err != nil {
		return sum, buf, err
	}
	if sum.Visitors = column(MergeVisitors(buf, stored.Visitors, &d.Rollup.Visitors)); err != nil {
		return sum, buf, err
	}
	if day {
		sum.Minutes = column(MergeDay(buf, stored.Minutes, d.Quarters, sum.Visitors))
	}
	return sum, buf, err
}

// Salvage is Merge, but for stored columns that cannot be read: each begins anew, because one
// row that is damaged must not keep every other click from being counted.
func (d *RowDelta) Salvage(buf []byte, stored PackedRow) (sum PackedRow, grown []byte, err error) {
	if sum, grown, err = d.Merge(buf, stored); err == nil {
		return sum, grown, nil
	}
	for _, lost := range [...]func(*PackedRow){
		func(p *PackedRow) { p.Minutes = nil },
		func(p *PackedRow) { p.Dimensions = nil },
		func(p *PackedRow) { p.Visitors = nil },
		func(p *PackedRow) { p.Minutes, p.Dimensions, p.Visitors = nil, nil, nil },
	} {
		part := stored
		lost(&part)
		if sum, grown, err = d.Merge(grown[:len(buf)], part); err == nil {
			return sum, grown, nil
		}
	}
	return sum, grown, err
}

// Unpack reads the row with that number.
func (r PackedRow) Unpack(number int64) (b BucketDelta, err error) {
	sum := &Rollup{Counts: r.Counts}
	b = BucketDelta{Bucket: RowBucket(number), Rollup: sum}
	if b.Bucket.Granularity == Day {
		b.Digest, err = DecodeDay(r.Minutes)
	} else {
		sum.Minutes, err = DecodeMinutes(r.Minutes)
	}
	if err != nil {
		return b, fmt.Errorf("minutes of roll-up %d: %w", number, err)
	}
	if sum.Dimensions, err = DecodeDimensions(r.Dimensions); err != nil {
		return b, fmt.Errorf("dimensions of roll-up %d: %w", number, err)
	}
	if sum.Visitors, err = DecodeVisitors(r.Visitors); err != nil {
		return b, fmt.Errorf("visitors of roll-up %d: %w", number, err)
	}
	return b, nil
}
