package analyticstest

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // scripts name zones, whatever the machine has

	"github.com/google/go-cmp/cmp"

	"curt/internal/analytics"
	"curt/internal/clicks"
	"curt/internal/link"
)

// System is an implementation with its way in for clicks.
type System struct {
	Reader analytics.Reader
	// Load takes clicks as they were recorded and returns when they are counted.
	// Their addresses lie where Places says.
	Load func(t *testing.T, raws []clicks.Raw)
}

// Run runs all scripts of a folder, each on a system of its own.
func Run(t *testing.T, dir string, open func(t *testing.T) System) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.test"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in %s: %v", dir, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".test"), func(t *testing.T) {
			s, model := open(t), new(Recount)
			for _, c := range parse(t, file) {
				if c.words == nil {
					s.Load(t, c.clicks)
					model.Load(c.clicks)
					continue
				}
				at := fmt.Sprintf("%s:%d", file, c.line)
				got := ask(t, at, s.Reader, c.words)
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("%s: eval %s\ngot:\n%s\n%s", at, strings.Join(c.words, " "), got, d)
				}
				if d := cmp.Diff(ask(t, at, model, c.words), got); d != "" {
					t.Errorf("%s: eval %s differs from the recount: %s", at, strings.Join(c.words, " "), d)
				}
			}
		})
	}
}

// question is an eval, read.
type question struct {
	kind       string
	keys       []link.Key
	scope      analytics.Scope
	now        time.Time
	step       analytics.Step
	dimensions []clicks.Dimension
	n          int
	all        bool
}

func read(words []string) (q question, err error) {
	q = question{kind: words[0], n: 10}
	for _, w := range words[1:] {
		name, value, ok := strings.Cut(w, "=")
		switch {
		case name == "from" && ok:
			q.scope.From, err = time.Parse(time.RFC3339, value)
		case name == "to" && ok:
			q.scope.To, err = time.Parse(time.RFC3339, value)
		case name == "now" && ok:
			q.now, err = time.Parse(time.RFC3339, value)
		case name == "zone" && ok:
			q.scope.Zone, err = time.LoadLocation(value)
		case name == "n" && ok:
			q.n, err = strconv.Atoi(value)
		case name == "step" && ok:
			q.step, ok = analytics.ParseStep(value)
		case name == "dimension" && ok:
			q.dimensions, ok = parseDimensions(value)
		case name == "all":
			q.all, ok = true, true
		default:
			k := link.Key{Code: link.Code(w)}
			if w == "orphans" {
				k = link.Key{}
			}
			q.keys, ok = append(q.keys, k), true
		}
		if err != nil || !ok {
			return q, fmt.Errorf("cannot read %q: %w", w, err)
		}
	}
	q.scope.Key = q.keys[0]
	return q, nil
}

func parseDimensions(list string) (dimensions []clicks.Dimension, ok bool) {
	for name := range strings.SplitSeq(list, ",") {
		d, ok := clicks.ParseDimension(name)
		if !ok {
			return nil, false
		}
		dimensions = append(dimensions, d)
	}
	return dimensions, true
}

// ask returns the answer as the text that scripts have.
func ask(t *testing.T, at string, r analytics.Reader, words []string) string {
	t.Helper()
	q, err := read(words)
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	var b strings.Builder
	switch q.kind {
	case "totals":
		s, err := r.Totals(t.Context(), q.scope, q.now)
		if err != nil {
			return "error: " + err.Error()
		}
		fmt.Fprintf(&b, "clicks %d humans %d bots %d previews %d fallbacks %d refused %d\n", s.Clicks, s.Humans, s.Clicks-s.Humans, s.Previews, s.Fallbacks, s.Refused)
		fmt.Fprintf(&b, "visitor_days %d clicks_24h %d last %s", s.VisitorDays, s.Clicks24h, moment(s.LastClicked))
	case "series":
		points, err := r.Series(t.Context(), q.scope, q.step, q.now)
		if err != nil {
			return "error: " + err.Error()
		}
		for _, p := range points {
			if q.all || p.Clicks > 0 {
				fmt.Fprintf(&b, "%s %d %d %d\n", moment(p.Start), p.Clicks, p.Humans, p.Visitors)
			}
		}
	case "top":
		top, err := r.Top(t.Context(), q.scope, q.n, q.now, q.dimensions...)
		if err != nil {
			return "error: " + err.Error()
		}
		for i, rows := range top {
			if len(top) > 1 {
				fmt.Fprintf(&b, "%s:\n", q.dimensions[i])
			}
			for _, row := range rows {
				fmt.Fprintf(&b, "%s %d %d\n", row.Value, row.Clicks, row.Humans)
			}
		}
	case "clicks":
		sums, err := r.Clicks(t.Context(), q.keys)
		if err != nil {
			return "error: " + err.Error()
		}
		fmt.Fprint(&b, sums)
	default:
		t.Fatalf("%s: unknown question %s", at, q.kind)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Format(time.RFC3339)
}
