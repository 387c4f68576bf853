package dashboard_test

import (
	"os"
	"testing"
	"time"

	"curt/test/internal/browser"
	"curt/test/internal/curttest"
)

// speedPlan is what speed.mjs is told to do.
type speedPlan struct {
	Program string   `json:"program"`
	Base    string   `json:"base"`
	Key     string   `json:"key"`
	Screens []screen `json:"screens"`
	Slower  int      `json:"slower"` // so many times, of a processor
	Within  int      `json:"within"` // milliseconds until a screen is there
	Least   int      `json:"least"`  // points of each category of Lighthouse
	Tries   int      `json:"tries"`  // until the bounds are kept: other work only takes away
}

// screen is a screen with what is in the page once it is there.
type screen struct {
	Name  string   `json:"name"`
	Path  string   `json:"path"`
	There []string `json:"there"`
}

// TestSpeed has the screens looked at that everybody opens. It measures, so that nothing else
// may run meanwhile: it is judged by `make speed` alone.
func TestSpeed(t *testing.T) {
	if os.Getenv("CURT_TEST_SPEED") == "" {
		t.Skip("make speed measures")
	}
	drive(t, "speed.mjs", speedPlan{
		Program: browser.Program(t), Base: busy(t, seed(t, time.Now())), Key: curttest.Key, Slower: 4, Within: 1000, Least: 95, Tries: 4,
		Screens: []screen{
			{"links", "/app/", []string{".body .row", "input[type=search]"}},
			{"one link", "/app/links/hostile", []string{".drawing path.people"}},
		},
	})
}
