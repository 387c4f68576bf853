// Package report holds the figures of one run and prints them as a dated Markdown
// table: each figure with its bar, the median and the range over the rounds, and
// the baselines that were measured in the same rounds.
//
// The package imports only the standard library.
package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Unit is what a figure is counted in; it decides how numbers are printed.
type Unit string

// The units.
const (
	PerSecond    Unit = "/s"
	Milliseconds Unit = "ms"
	Seconds      Unit = "s"
	Microseconds Unit = "µs"
	Megabytes    Unit = "MB" // 10^6 bytes
	Bytes        Unit = "B"
	Ratio        Unit = "×"
	Reads        Unit = "reads"
)

// Bar is what a figure must reach. The zero Bar asks for nothing.
type Bar struct {
	AtLeast float64
	AtMost  float64
}

func (b Bar) none() bool { return b == Bar{} }

func (b Bar) reached(v float64) bool {
	return v >= b.AtLeast && (b.AtMost == 0 || v <= b.AtMost)
}

func (b Bar) text(u Unit) string {
	switch {
	case b.none():
		return ""
	case b.AtLeast != 0 && b.AtMost != 0:
		return format(b.AtLeast, u) + " to " + format(b.AtMost, u)
	case b.AtMost != 0:
		return "≤ " + format(b.AtMost, u)
	}
	return "≥ " + format(b.AtLeast, u)
}

// Base is a baseline: the same thing done by something simpler, once in each
// round, next to the figure.
type Base struct {
	Name   string
	Values []float64 // of each round, in the row's unit
	CPU    []float64 // µs for each request, of each round; nil = not measured
}

// Row is one figure.
type Row struct {
	Figure string
	Unit   Unit
	Bar    Bar
	Values []float64 // of each round
	CPU    []float64 // µs of the server for each request, of each round; nil = not measured
	Bases  []Base
	Broken string // why the figure is worth nothing, "" = it is sound
}

// Reached reports whether the median meets the bar; a broken figure never does.
func (r Row) Reached() bool {
	return r.Broken == "" && len(r.Values) > 0 && (r.Bar.none() || r.Bar.reached(Median(r.Values)))
}

// Fact is a line about the run: the machine, the commit, the command.
type Fact struct{ Name, Value string }

// Report is one run.
type Report struct {
	Title string
	Facts []Fact
	Rows  []Row
	Notes []string
}

// Markdown renders the report.
func (r Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", r.Title)
	for _, f := range r.Facts {
		fmt.Fprintf(&b, "- %s: %s\n", f.Name, f.Value)
	}
	b.WriteString("\n| figure | bar | median | min – max | reached | paired baseline: median (ratio) | server CPU per request |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", row.Figure, row.Bar.text(row.Unit),
			medianText(row.Values, row.Unit), rangeText(row.Values, row.Unit), row.verdict(), row.bases(), cpuText(row))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\n%s\n", n)
	}
	return b.String()
}

func (r Row) verdict() string {
	switch {
	case r.Broken != "":
		return "broken: " + strings.ReplaceAll(strings.ReplaceAll(r.Broken, "|", "/"), "\n", "; ")
	case r.Bar.none():
		return ""
	case r.Reached():
		return "yes"
	}
	return "**no**"
}

// bases names each baseline with its median and the median of the rounds' ratios:
// a machine that was slow in one round was slow for both.
func (r Row) bases() string {
	var parts []string
	for _, b := range r.Bases {
		parts = append(parts, fmt.Sprintf("%s %s (×%s)", b.Name, medianText(b.Values, r.Unit), ratio(r.Values, b.Values)))
	}
	return strings.Join(parts, "; ")
}

func cpuText(r Row) string {
	if len(r.CPU) == 0 {
		return ""
	}
	parts := []string{medianText(r.CPU, Microseconds)}
	for _, b := range r.Bases {
		if len(b.CPU) > 0 {
			parts = append(parts, b.Name+" "+medianText(b.CPU, Microseconds))
		}
	}
	return strings.Join(parts, "; ")
}

// ratio returns the median over the rounds of value/base.
func ratio(values, bases []float64) string {
	var all []float64
	for i := range min(len(values), len(bases)) {
		if bases[i] > 0 {
			all = append(all, values[i]/bases[i])
		}
	}
	if len(all) == 0 {
		return "–"
	}
	return strconv.FormatFloat(Median(all), 'f', 2, 64)
}

// Median returns the middle value, or the mean of the two in the middle; 0 of none.
func Median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	if n == 0 {
		return 0
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}

func medianText(values []float64, u Unit) string {
	if len(values) == 0 {
		return "–"
	}
	return format(Median(values), u)
}

func rangeText(values []float64, u Unit) string {
	if len(values) == 0 {
		return "–"
	}
	return number(slices.Min(values)) + " – " + number(slices.Max(values)) + " " + string(u)
}

func format(v float64, u Unit) string { return number(v) + " " + string(u) }

// number prints three digits or more: 0.123, 4.56, 78.9, 12,345.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 1:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
