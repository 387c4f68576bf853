package exchange

import (
	"time"

	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
)

// Total is the sums of a link's whole life, as an export has them.
type Total struct {
	Domain  string `json:"domain,omitempty"`
	Code    string `json:"short_code"`
	Orphans bool   `json:"orphans,omitempty"` // of no link: requests for codes that none has
	Counts
	FirstSeen   *time.Time `json:"first_seen_at,omitempty"`
	LastClicked *time.Time `json:"last_clicked_at,omitempty"`
}

// Counts are numbers of requests: clicks are humans and bots; the others are no clicks.
type Counts struct {
	Clicks    uint64 `json:"clicks"`
	Humans    uint64 `json:"humans"`
	Previews  uint64 `json:"previews,omitempty"`
	Fallbacks uint64 `json:"fallbacks,omitempty"`
	Refused   uint64 `json:"refused,omitempty"`
}

// Rollup is what is known of a link in one day (UTC) or quarter of an hour.
type Rollup struct {
	Domain  string    `json:"domain,omitempty"`
	Code    string    `json:"short_code"`
	Orphans bool      `json:"orphans,omitempty"` // as in Total
	Width   string    `json:"width"`             // day or quarter
	Start   time.Time `json:"start"`
	Counts
	Minutes    []Minute           `json:"minutes,omitempty"` // of a quarter
	Dimensions map[string][]Value `json:"dimensions,omitempty"`
	Visitors   uint64             `json:"visitors,omitempty"`
	// VisitorSet is the set itself, in the form that package clicks stores, so that sets
	// can be joined without counting anybody twice.
	VisitorSet []byte `json:"visitor_set,omitempty"`
}

// Minute is one minute of a quarter of an hour.
type Minute struct {
	Minute uint8  `json:"minute"` // 0 to 14
	Clicks uint64 `json:"clicks"`
	Humans uint64 `json:"humans"`
}

// Value is one value of a dimension.
type Value struct {
	Value  string `json:"value"`
	Clicks uint64 `json:"clicks"`
	Humans uint64 `json:"humans"`
}

// TotalOf returns a link's total as text.
func TotalOf(d *rollup.LinkDelta) Total {
	t := d.Total
	return Total{
		Domain: string(d.Key.Domain), Code: string(d.Key.Code), Orphans: d.Key.Code == "", Counts: countsOf(t.Counts),
		FirstSeen: moment(t.FirstSeen), LastClicked: moment(t.LastClicked),
	}
}

// RollupOf returns the first bucket of a delta as text.
func RollupOf(d *rollup.LinkDelta) Rollup {
	b := &d.Buckets[0]
	r := Rollup{
		Domain: string(d.Key.Domain), Code: string(d.Key.Code), Orphans: d.Key.Code == "", Width: "day", Start: b.Bucket.Start(),
		Counts: countsOf(b.Rollup.Counts), Visitors: b.Rollup.Visitors.Count(),
	}
	if b.Bucket.Granularity == rollup.Quarter {
		r.Width = "quarter"
		for _, m := range b.Rollup.Minutes {
			r.Minutes = append(r.Minutes, Minute{m.Index, m.Clicks, m.Humans})
		}
	}
	for i, values := range b.Rollup.Dimensions {
		if len(values) > 0 && r.Dimensions == nil {
			r.Dimensions = map[string][]Value{}
		}
		for _, v := range values {
			name := clicks.Dimension(i).String()
			r.Dimensions[name] = append(r.Dimensions[name], Value{v.Value, v.Clicks, v.Humans})
		}
	}
	if r.Visitors > 0 {
		r.VisitorSet = b.Rollup.Visitors.Append(nil)
	}
	return r
}

func countsOf(c rollup.Counts) Counts {
	return Counts{Clicks: c.Clicks, Humans: c.Humans, Previews: c.Previews, Fallbacks: c.Fallbacks, Refused: c.Refused}
}

func moment(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := time.UnixMilli(ms).UTC()
	return &t
}
