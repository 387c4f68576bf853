package main

import (
	"strings"

	"curt.example/client"
)

// sparklineWidth fits beside its name into 80 columns.
const sparklineWidth = 60

// sparkline draws a series with the eight block characters; empty steps are dots.
// Neighbours of a series that is too long are added up.
func sparkline(points []client.Point) string {
	clicks := make([]uint64, min(len(points), sparklineWidth))
	for i := range points {
		clicks[i*len(clicks)/len(points)] += points[i].Clicks
	}
	var highest uint64
	for _, n := range clicks {
		highest = max(highest, n)
	}
	var b strings.Builder
	for _, n := range clicks {
		if n == 0 {
			b.WriteByte('.')
			continue
		}
		b.WriteRune([]rune("▁▂▃▄▅▆▇█")[(n*8-1)/highest])
	}
	return b.String()
}
