package web

import (
	"fmt"
	"strconv"
	"time"

	"curt/internal/analytics"
)

// The size of a chart in its own units; it is shown as wide as the page is.
const (
	chartWidth  = 720
	chartHeight = 200
	chartBase   = chartHeight - 1 // where the bars stand
	chartTop    = 8
)

// chart is a series of clicks, as bars and as a table.
type chart struct {
	Caption             string
	Width, Height, Base int
	Bars                []bar // none when nobody clicked
	From, To            time.Time
	Rows                []point
}

// bar is one step: clicks of people below, those of programs on top.
type bar struct{ X, Width, Top, Robots, Middle, Humans string }

type point struct {
	Start          time.Time
	Clicks, Humans string
}

// chartOf draws a series. Steps without a click have no bar.
func chartOf(series []analytics.Point, scope analytics.Scope, word string) chart {
	c := chart{Width: chartWidth, Height: chartHeight, Base: chartBase, From: scope.From.UTC(), To: scope.To.UTC()}
	var most, sum uint64
	at := 0
	for i, p := range series {
		sum += p.Clicks
		if p.Clicks > most {
			most, at = p.Clicks, i
		}
	}
	if most == 0 {
		c.Caption = "Nobody clicked in this time."
		return c
	}
	c.Caption = fmt.Sprintf("Clicks by %s: %s in all, at most %s in one, from %s", word, number(sum), number(most),
		series[at].Start.UTC().Format("2 January 2006, 15:04 UTC"))
	wide := float64(chartWidth) / float64(len(series))
	gap := min(2, wide/4)
	for i, p := range series {
		c.Rows = append(c.Rows, point{p.Start.UTC(), number(p.Clicks), number(p.Humans)})
		if p.Clicks == 0 {
			continue
		}
		scale := float64(chartBase-chartTop) / float64(most)
		humans, all := float64(p.Humans)*scale, max(float64(p.Clicks)*scale, 1)
		c.Bars = append(c.Bars, bar{
			X: units(float64(i)*wide + gap/2), Width: units(wide - gap),
			Top: units(chartBase - all), Robots: units(all - humans), Middle: units(chartBase - humans), Humans: units(humans),
		})
	}
	return c
}

func units(f float64) string { return strconv.FormatFloat(max(f, 0), 'f', 2, 64) }
