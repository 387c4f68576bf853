package links

import (
	"testing"

	"curt.example/client"
)

func TestSparkline(t *testing.T) {
	if got := sparkline([]client.Point{{Clicks: 0}, {Clicks: 1}, {Clicks: 4}, {Clicks: 8}}); got != ".▁▄█" {
		t.Errorf("got %q", got)
	}
}

func TestSparklineOfALongSeriesFits(t *testing.T) {
	points := make([]client.Point, 1000)
	points[999].Clicks = 3
	if got := []rune(sparkline(points)); len(got) != sparklineWidth || got[sparklineWidth-1] != '█' || got[0] != '.' {
		t.Errorf("%s", string(got))
	}
	if got := sparkline(nil); got != "" {
		t.Errorf("%q", got)
	}
}
