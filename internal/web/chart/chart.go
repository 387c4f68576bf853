// Package chart draws series of clicks as columns.
package chart

import (
	"fmt"
	"strconv"
	"time"

	"curt/internal/analytics"
)

// The size of a chart in its own units; it is shown as wide as the page is.
const (
	width  = 720
	height = 200
	base   = height - 1 // where the columns stand
	top    = 8
)

// Chart is a series of clicks, as columns and as a table.
type Chart struct {
	Caption             string
	Width, Height, Base int
	Columns             []Column // none when nobody clicked
	From, To            time.Time
	Rows                []Point
}

// Column is one step: clicks of people below, those of programs on top.
type Column struct{ X, Width, Top, Robots, Middle, Humans string }

// Point is one step in the table.
type Point struct {
	Start          time.Time
	Clicks, Humans string
}

// Of draws a series. Steps without a click have no bar.
func Of(series []analytics.Point, scope analytics.Scope, word string) Chart {
	c := Chart{Width: width, Height: height, Base: base, From: scope.From.UTC(), To: scope.To.UTC()}
	var most, sum uint64
	at := 0
	for i, p := range series {
		sum += p.Clicks
		if p.Clicks > most {
			most, at = p.Clicks, i
		}
	}
	if most == 0 {
		c.Caption = "No clicks in this period."
		return c
	}
	c.Caption = fmt.Sprintf("Clicks by %s: %s in total, peak %s at %s", word, Number(sum), Number(most),
		series[at].Start.UTC().Format("2 January 2006, 15:04 UTC"))
	wide := float64(width) / float64(len(series))
	gap := min(2, wide/4)
	for i, p := range series {
		c.Rows = append(c.Rows, Point{p.Start.UTC(), Number(p.Clicks), Number(p.Humans)})
		if p.Clicks == 0 {
			continue
		}
		scale := float64(base-top) / float64(most)
		humans, all := float64(p.Humans)*scale, max(float64(p.Clicks)*scale, 1)
		c.Columns = append(c.Columns, Column{
			X: units(float64(i)*wide + gap/2), Width: units(wide - gap),
			Top: units(base - all), Robots: units(all - humans), Middle: units(base - humans), Humans: units(humans),
		})
	}
	return c
}

func units(f float64) string { return strconv.FormatFloat(max(f, 0), 'f', 2, 64) }

// Number writes n in groups of three digits.
func Number(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
