package internal_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The chart of README.md is drawn from the committed figures, so that it cannot differ from them:
// go test ./internal -run TestChart -update-chart
var updateChart = flag.Bool("update-chart", false, "write docs/figures.svg") //nolint:gochecknoglobals // a flag of the test

const (
	chartFile    = "../docs/figures.svg"
	laneRun      = "2026-11-22-lane-a0a1caa"
	createsRun   = "2026-11-21-5017334"
	postgresRun  = "2026-11-22-postgres-4b8ed66"
	resultFolder = "../bench/results"
)

// bar is a value of the chart. Only curt's own are highlighted.
type bar struct {
	label string
	value float64
	ours  bool
}

type panel struct {
	title, unit string
	bars        []bar
}

func TestChartShowsTheCommittedFigures(t *testing.T) {
	newestRunIsCharted(t)
	drawn := draw(panels(t))
	if *updateChart {
		if err := os.WriteFile(chartFile, drawn, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(chartFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, drawn) {
		t.Error("docs/figures.svg differs from bench/results: go test ./internal -run TestChart -update-chart")
	}
}

// newestRunIsCharted fails when a later day has a run of the same kind as the one in the chart.
func newestRunIsCharted(t *testing.T) {
	t.Helper()
	for _, run := range []string{laneRun, postgresRun} {
		day, kind := run[:10], strings.Split(run, "-")[3]
		names, err := filepath.Glob(filepath.Join(resultFolder, "*-"+kind+"-*.md"))
		if err != nil || len(names) == 0 {
			t.Fatalf("no results of %s: %v", kind, err)
		}
		for _, name := range names {
			if filepath.Base(name)[:10] > day {
				t.Errorf("%s is newer than the charted %s: name it in figures_test.go and draw the chart anew", filepath.Base(name), run)
			}
		}
	}
}

func panels(t *testing.T) []panel {
	t.Helper()
	lane, creates, postgres := results(t, laneRun), results(t, createsRun), results(t, postgresRun)
	row := func(text, start, pattern string) []float64 {
		t.Helper()
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "| "+start+" |") {
				continue
			}
			found := regexp.MustCompile(pattern).FindStringSubmatch(line)
			if found == nil {
				t.Fatalf("%q has no %s", line, pattern)
			}
			var values []float64
			for _, digits := range found[1:] {
				value, err := strconv.ParseFloat(strings.ReplaceAll(digits, ",", ""), 64)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, value)
			}
			return values
		}
		t.Fatalf("no row begins with %q", start)
		return nil
	}
	const pair = `([0-9.]+) and ([0-9.]+) µs`
	logged := row(lane, "CPU ÷ nginx-log, uniform", pair)
	plain := row(lane, "CPU ÷ nginx, uniform", pair)
	floor := row(lane, "CPU ÷ floor, uniform", pair)
	library := row(lane, "CPU ÷ net/http, uniform", pair)
	slowest := row(lane, "p99 at half of saturation, folding on, uniform", `\| ([0-9.]+) ms \|.*nginx-log ([0-9.]+) ms`)
	const perSecond = `\| ([0-9,]+) /s \|.*?([0-9,]+) /s \(×[0-9.]+\) \|`
	empty := row(creates, "durable creates, 64 connections, empty store", perSecond)
	large := row(creates, "durable creates, 64 connections, 10 million links", perSecond)
	sql := row(postgres, "durable creates in PostgreSQL over HTTP, 64 connections", perSecond)
	return []panel{
		{"CPU time of a redirect", "µs, less is better", []bar{
			{"curt, click logged", logged[0], true},
			{"nginx, access log", logged[1], false},
			{"nginx, no log", plain[1], false},
			{"Go net/http, fixed answer", library[1], false},
			{"epoll loop in C, fixed answer", floor[1], false},
		}},
		{"99th percentile at half of saturation, one core", "ms, less is better", []bar{
			{"curt, statistics running", slowest[0], true},
			{"nginx, access log", slowest[1], false},
		}},
		{"Creates, each on disk before its answer", "per second, more is better", []bar{
			{"curt, SQLite, empty", empty[0], true},
			{"curt, SQLite, 10 million links", large[0], true},
			{"curt, PostgreSQL", sql[0], true},
			{"one fsync per request", empty[1], false},
			{"one INSERT per request", sql[1], false},
		}},
	}
}

func results(t *testing.T, run string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(resultFolder, run+".md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// draw makes an image of bars that follows the reader's light or dark scheme.
func draw(all []panel) []byte {
	const width, left, longest, step = 760, 230, 430, 24
	var body strings.Builder
	y := 20
	for _, p := range all {
		most := 0.0
		for _, b := range p.bars {
			most = max(most, b.value)
		}
		fmt.Fprintf(&body, "<text class=\"t\" x=\"20\" y=\"%d\">%s <tspan class=\"u\">(%s)</tspan></text>\n", y+12, p.title, p.unit)
		y += 26
		for _, b := range p.bars {
			class := "o"
			if b.ours {
				class = "c"
			}
			length := max(2, b.value/most*longest)
			fmt.Fprintf(&body, "<text class=\"l\" x=\"%d\" y=\"%d\">%s</text>", left-12, y+13, b.label)
			fmt.Fprintf(&body, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"16\" rx=\"3\"/>", class, left, y, length)
			fmt.Fprintf(&body, "<text class=\"v\" x=\"%.1f\" y=\"%d\">%s</text>\n", left+length+8, y+13, number(b.value))
			y += step
		}
		y += 18
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-label="Measured figures of curt beside baselines">
<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.t { font-weight: 600 } .u { font-weight: 400; fill: #59636e } .l { text-anchor: end }
.b { fill: #ffffff; stroke: #d1d9e0 } .c { fill: #1a56b0 } .o { fill: #9aa4af }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .u { fill: #9198a1 } .b { fill: #151b23; stroke: #3d444d } .c { fill: #6ea8fe } .o { fill: #656c76 }
}
</style>
<rect class="b" x="0.5" y="0.5" width="%[3]d" height="%[4]d" rx="8"/>
%[5]s<text class="u" x="20" y="%[6]d">AMD EPYC, 2 cores. %[7]s, %[8]s, %[9]s.</text>
</svg>
`, width, y+26, width-1, y+25, body.String(), y+8, laneRun, createsRun, postgresRun)
	return out.Bytes()
}

// number writes thousands with a comma, and small values with three digits.
func number(v float64) string {
	if v < 1000 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return fmt.Sprintf("%d,%03d", int(v)/1000, int(v)%1000)
}
