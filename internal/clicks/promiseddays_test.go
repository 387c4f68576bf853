package clicks_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/clicks"
)

// TestADaysRowHasTheClicksOfItsQuarters: whatever else of the link a batch has, the digest of
// a day is made of the quarters of that day in which somebody clicked, in their order.
func TestADaysRowHasTheClicksOfItsQuarters(t *testing.T) {
	const number = 7
	today := clicks.BucketAt(clicks.Day, someDay())
	quarter := func(i int, all, humans uint64) clicks.BucketDelta {
		b := clicks.Bucket{Granularity: clicks.Quarter, Ordinal: uint32(int(today.Ordinal)*96 + i)}
		return clicks.BucketDelta{Bucket: b, Rollup: &clicks.Rollup{Counts: clicks.Counts{Clicks: all, Humans: humans}}}
	}
	day := clicks.BucketDelta{Bucket: today, Rollup: &clicks.Rollup{Counts: clicks.Counts{Clicks: 12, Humans: 4}}}
	refused := quarter(50, 0, 0)
	refused.Rollup.Refused = 3
	rows, _ := clicks.RowDeltas(nil, nil, number, []clicks.BucketDelta{
		quarter(96, 100, 9), quarter(95, 5, 3), day, refused, quarter(-1, 200, 9), quarter(0, 7, 1),
	})
	for _, row := range rows {
		if clicks.RowBucket(row.Number) != today {
			continue
		}
		merged, _, err := row.Merge(nil, clicks.PackedRow{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := merged.Unpack(row.Number)
		if err != nil {
			t.Fatal(err)
		}
		want := []clicks.Minute{{Index: 0, Clicks: 7, Humans: 1}, {Index: 95, Clicks: 5, Humans: 3}}
		if diff := cmp.Diff(want, got.Digest.Quarters); diff != "" {
			t.Errorf("the quarters of the day (-want +got):\n%s", diff)
		}
		if !got.Digest.Adds(got.Rollup.Counts) {
			t.Errorf("%+v does not add up to %+v", got.Digest, got.Rollup.Counts)
		}
	}
}
