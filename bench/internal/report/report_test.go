package report_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/bench/internal/report"
)

func TestTableShowsFigureBarRangeAndPairedRatio(t *testing.T) {
	r := report.Report{
		Title: "Figures",
		Facts: []report.Fact{{Name: "machine", Value: "two cores"}},
		Rows: []report.Row{
			{
				Figure: "creates", Unit: report.PerSecond, Bar: report.Bar{AtLeast: 10_000},
				Values: []float64{11_000, 9_000, 12_345.4}, CPU: []float64{61, 62, 63},
				// The slow round was slow for both: the ratio is ×0.5 in each.
				Bases: []report.Base{{Name: "bare", Values: []float64{22_000, 18_000, 24_690.8}, CPU: []float64{13}}},
			},
			{Figure: "p99", Unit: report.Milliseconds, Bar: report.Bar{AtMost: 2}, Values: []float64{2.5, 1.75}},
			{Figure: "memory", Unit: report.Megabytes, Values: []float64{0.5}},
			{Figure: "torn", Unit: report.PerSecond, Bar: report.Bar{AtLeast: 1}, Values: []float64{5}, Broken: "a|b\nc"},
		},
		Notes: []string{"A note."},
	}
	want := `# Figures

- machine: two cores

| figure | bar | median | min – max | reached | paired baseline: median (ratio) | server CPU per request |
|---|---|---|---|---|---|---|
| creates | ≥ 10,000 /s | 11,000 /s | 9,000 – 12,345 /s | yes | bare 22,000 /s (×0.50) | 62.0 µs; bare 13.0 µs |
| p99 | ≤ 2.00 ms | 2.12 ms | 1.75 – 2.50 ms | **no** |  |  |
| memory |  | 0.500 MB | 0.500 – 0.500 MB |  |  |  |
| torn | ≥ 1.00 /s | 5.00 /s | 5.00 – 5.00 /s | broken: a/b; c |  |  |

A note.
`
	if diff := cmp.Diff(want, r.Markdown()); diff != "" {
		t.Errorf("markdown (-want +got):\n%s", diff)
	}
	for i, want := range []bool{true, false, true, false} {
		if got := r.Rows[i].Reached(); got != want {
			t.Errorf("%s reached = %v", r.Rows[i].Figure, got)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{7, 1, 3}, 3}, {[]float64{4, 1, 2, 3}, 2.5}} {
		if got := report.Median(c.values); got != c.want {
			t.Errorf("median of %v = %v, want %v", c.values, got, c.want)
		}
	}
}

func TestRowWithoutRoundsIsNotReached(t *testing.T) {
	row := report.Row{Figure: "one core", Unit: report.PerSecond, Bar: report.Bar{AtMost: 5}}
	if row.Reached() {
		t.Error("a figure that was not measured is reached")
	}
	if md := (report.Report{Rows: []report.Row{row}}).Markdown(); !strings.Contains(md, "| – | – | **no** |") {
		t.Errorf("it is not shown as missing:\n%s", md)
	}
}
