package rollup_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/clicks/rollup"
)

// The number of a row says its bucket, and ranges hold the rows of a span and no others.
func TestNumbersOfRows(t *testing.T) {
	start := time.Date(2026, 3, 14, 22, 0, 0, 0, time.UTC)
	var quarters []rollup.Bucket
	for i := range 300 { // four days
		quarters = append(quarters, rollup.BucketAt(rollup.Quarter, start.Add(time.Duration(i)*15*time.Minute)))
	}
	seen := map[int64]bool{}
	for _, b := range append(quarters, rollup.BucketAt(rollup.Day, start), rollup.BucketAt(rollup.Day, start.Add(24*time.Hour))) {
		for _, link := range []int64{1, 2, 1<<40 - 1} {
			n := rollup.RowNumber(link, b)
			if rollup.RowBucket(n) != b || seen[n] || n>>rollup.RowLinkShift&rollup.RowLinkMask != link {
				t.Errorf("row %d of link %d and %+v is of %+v", n, link, b, rollup.RowBucket(n))
			}
			seen[n] = true
		}
	}
	for _, span := range [][2]int{{0, 0}, {0, 7}, {7, 8}, {3, 8}, {0, 299}, {8, 103}, {8, 104}, {100, 290}} {
		s := rollup.Span{Granularity: rollup.Quarter, First: quarters[span[0]].Ordinal, Last: quarters[span[1]].Ordinal}
		ranges := rollup.RowRanges(nil, 7, s)
		for i, b := range quarters {
			holds := 0
			for _, r := range ranges {
				if n := rollup.RowNumber(7, b); r.First <= n && n <= r.Last {
					holds++
				}
			}
			if want := i >= span[0] && i <= span[1]; (holds == 1) != want || holds > 1 {
				t.Errorf("quarters %v: number %d is in %d ranges", span, i, holds)
			}
		}
		for _, r := range ranges {
			if day := rollup.BucketAt(rollup.Day, rollup.RowBucket(r.First).Start()); rollup.RowNumber(7, day) >= r.First && rollup.RowNumber(7, day) <= r.Last {
				t.Errorf("quarters %v: the day's row is in a range", span)
			}
		}
	}
	days := rollup.RowRanges(nil, 7, rollup.Span{Granularity: rollup.Day, First: 20_000, Last: 20_002})
	if len(days) != 3 || days[0].First != days[0].Last || rollup.RowBucket(days[2].First) != (rollup.Bucket{Granularity: rollup.Day, Ordinal: 20_002}) {
		t.Errorf("ranges of three days: %+v", days)
	}
}

// happened makes what happened to a link in a quarter.
func happened(r *rand.Rand) *rollup.Rollup {
	o := new(rollup.Rollup)
	for i := range uint8(15) {
		if r.IntN(2) == 0 {
			o.Minutes = append(o.Minutes, rollup.Minute{Index: i, Clicks: 1 + r.Uint64N(200), Humans: r.Uint64N(2)})
		}
	}
	for _, m := range o.Minutes {
		o.Clicks, o.Humans = o.Clicks+m.Clicks, o.Humans+m.Humans
	}
	for d := range o.Dimensions {
		for i := range r.IntN(4) {
			o.Dimensions[d] = append(o.Dimensions[d], rollup.Value{Value: fmt.Sprint("value ", i, d), Clicks: 1 + r.Uint64N(500), Humans: r.Uint64N(3)})
		}
	}
	tags := make([]uint64, r.IntN(5))
	for i := range tags {
		tags[i] = 1 + r.Uint64N(20)
	}
	o.Visitors.Add(tags)
	return o
}

// Rows that are merged again and again say what their parts say together.
func TestMergedRowsAreTheSumOfTheirParts(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	quarter := rollup.BucketAt(rollup.Quarter, clicklogtest.SomeDay())
	for range 50 {
		var stored rollup.PackedRow
		want := new(rollup.Rollup)
		for range 1 + r.IntN(4) {
			part := happened(r)
			want.Counts.Add(part.Counts)
			want.Add(&rollup.Rollup{Minutes: part.Minutes, Dimensions: part.Dimensions, Visitors: part.Visitors})
			rows, _ := rollup.RowDeltas(nil, nil, 7, []rollup.BucketDelta{{Bucket: quarter, Rollup: part}})
			merged, _, err := rows[0].Merge([]byte("what is before"), stored)
			if err != nil {
				t.Fatal(err)
			}
			stored = merged
		}
		got, err := stored.Unpack(rollup.RowNumber(7, quarter))
		if err != nil || got.Bucket != quarter {
			t.Fatalf("%+v, %v", got.Bucket, err)
		}
		if got.Rollup.Counts != want.Counts || got.Rollup.Visitors.Count() != want.Visitors.Count() {
			t.Errorf("%+v and %d visitors, want %+v and %d", got.Rollup.Counts, got.Rollup.Visitors.Count(), want.Counts, want.Visitors.Count())
		}
		if diff := cmp.Diff(want.Minutes, got.Rollup.Minutes); diff != "" {
			t.Errorf("minutes (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want.Dimensions, got.Rollup.Dimensions); diff != "" {
			t.Errorf("dimensions (-want +got):\n%s", diff)
		}
		sums := rollup.NewSums(0)
		if err := sums.AddPacked(stored.Dimensions); err != nil || len(sums.Values(0)) != len(want.Dimensions[0]) {
			t.Errorf("%d values in sums, want %d: %v", len(sums.Values(0)), len(want.Dimensions[0]), err)
		}
	}
}

// A column of another version, or with its end cut off, is an error wherever it is read,
// and never added to.
func TestSpoiledRowsAreErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 3))
	quarter := rollup.BucketAt(rollup.Quarter, clicklogtest.SomeDay())
	part := happened(r)
	part.Visitors.Add([]uint64{7})
	day := rollup.Bucket{Granularity: rollup.Day, Ordinal: rollup.BucketAt(rollup.Day, clicklogtest.SomeDay()).Ordinal}
	rows, _ := rollup.RowDeltas(nil, nil, 7, []rollup.BucketDelta{{Bucket: quarter, Rollup: part}, {Bucket: day, Rollup: part}})
	for _, row := range rows {
		whole, _, err := row.Merge(nil, rollup.PackedRow{})
		if err != nil {
			t.Fatal(err)
		}
		for name, column := range map[string]func(p *rollup.PackedRow) *[]byte{
			"minutes":    func(p *rollup.PackedRow) *[]byte { return &p.Minutes },
			"dimensions": func(p *rollup.PackedRow) *[]byte { return &p.Dimensions },
			"visitors":   func(p *rollup.PackedRow) *[]byte { return &p.Visitors },
		} {
			good := *column(&whole)
			if len(good) == 0 {
				t.Fatalf("row %d has no %s", row.Number, name)
			}
			for what, bad := range map[string][]byte{
				"another version": append([]byte{good[0] ^ 0x40}, good[1:]...),
				"cut":             good[: len(good)-1 : len(good)-1],
			} {
				spoiled := whole
				*column(&spoiled) = bad
				if _, err := spoiled.Unpack(row.Number); err == nil {
					t.Errorf("%s of row %d, %s: it is read", name, row.Number, what)
				}
				if _, _, err := row.Merge(nil, spoiled); err == nil {
					t.Errorf("%s of row %d, %s: it is added to", name, row.Number, what)
				}
				if name == "dimensions" {
					if err := rollup.NewSums(0).AddPacked(bad); err == nil {
						t.Errorf("%s, %s: it is summed up", name, what)
					}
				}
			}
		}
	}
}

// Minutes and quarters are in order, each once, and within their bucket.
func TestStrangeMinutesAreErrors(t *testing.T) {
	for _, b := range [][]byte{{1, 14, 1, 0}, {1, 3, 1, 0, 4, 1, 0}, {2, 9, 95, 1, 0}, {2, 9, 0, 1, 0, 1, 1, 0}} {
		var err error
		if b[0] == 1 {
			_, err = rollup.DecodeMinutes(b)
		} else {
			_, err = rollup.DecodeDay(b)
		}
		if err != nil {
			t.Errorf("%v: %v", b, err)
		}
	}
	for _, b := range [][]byte{{1, 15, 1, 0}, {1, 3, 1, 0, 3, 1, 0}, {1, 4, 1, 0, 3, 1, 0}, {1, 3}, {1, 3, 1}, {1, 3, 0x80}, {2, 3, 1, 0}, {0}} {
		if m, err := rollup.DecodeMinutes(b); err == nil {
			t.Errorf("minutes %v are read as %v", b, m)
		}
	}
	for _, b := range [][]byte{
		{2}, {2, 0x80}, {1, 9}, {2, 9, 96, 1, 0}, {2, 9, 3, 1, 0, 3, 1, 0}, {2, 9, 4, 1, 0, 3, 1, 0}, {2, 9, 3}, {2, 9, 3, 1}, {2, 9, 3, 0x80}, {2, 9, 3, 1, 0x80},
	} {
		if d, err := rollup.DecodeDay(b); err == nil {
			t.Errorf("a digest %v is read as %+v", b, d)
		}
	}
}

// TestADaysRowHasTheClicksOfItsQuarters: whatever else of the link a batch has, the digest of
// a day is made of the quarters of that day in which somebody clicked, in their order.
func TestADaysRowHasTheClicksOfItsQuarters(t *testing.T) {
	const number = 7
	today := rollup.BucketAt(rollup.Day, clicklogtest.SomeDay())
	quarter := func(i int, all, humans uint64) rollup.BucketDelta {
		b := rollup.Bucket{Granularity: rollup.Quarter, Ordinal: uint32(int(today.Ordinal)*96 + i)}
		return rollup.BucketDelta{Bucket: b, Rollup: &rollup.Rollup{Counts: rollup.Counts{Clicks: all, Humans: humans}}}
	}
	day := rollup.BucketDelta{Bucket: today, Rollup: &rollup.Rollup{Counts: rollup.Counts{Clicks: 12, Humans: 4}}}
	refused := quarter(50, 0, 0)
	refused.Rollup.Refused = 3
	rows, _ := rollup.RowDeltas(nil, nil, number, []rollup.BucketDelta{
		quarter(96, 100, 9), quarter(95, 5, 3), day, refused, quarter(-1, 200, 9), quarter(0, 7, 1),
	})
	for _, row := range rows {
		if rollup.RowBucket(row.Number) != today {
			continue
		}
		merged, _, err := row.Merge(nil, rollup.PackedRow{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := merged.Unpack(row.Number)
		if err != nil {
			t.Fatal(err)
		}
		want := []rollup.Minute{{Index: 0, Clicks: 7, Humans: 1}, {Index: 95, Clicks: 5, Humans: 3}}
		if diff := cmp.Diff(want, got.Digest.Quarters); diff != "" {
			t.Errorf("the quarters of the day (-want +got):\n%s", diff)
		}
		if !got.Digest.Adds(got.Rollup.Counts) {
			t.Errorf("%+v does not add up to %+v", got.Digest, got.Rollup.Counts)
		}
	}
}
