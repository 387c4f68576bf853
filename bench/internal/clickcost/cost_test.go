package clickcost_test

import (
	"testing"
	"time"

	"curt/bench/internal/clickcost"
)

func TestEveryClickIsStoredOnceAndKeptRaw(t *testing.T) {
	const n = 60_000
	cost, err := clickcost.Run(t.Context(), clickcost.Config{Folder: t.TempDir(), Clicks: n, Links: 5_000})
	if err != nil {
		t.Fatal(err)
	}
	if cost.Broken != "" {
		t.Error(cost.Broken)
	}
	if cost.Clicks != n || cost.CPU <= 0 || cost.Wall <= 0 || cost.LogBytes < n*10 {
		t.Errorf("%+v", cost)
	}
	t.Logf("%s CPU, %.0f/s, %d bytes a click", cost.CPU/n, n/cost.Wall.Seconds(), cost.LogBytes/n)
}

func TestBaseWritesEveryLine(t *testing.T) {
	const n = 20_000
	cost, err := clickcost.Base(clickcost.Config{Folder: t.TempDir(), Clicks: n, Links: 1_000})
	if err != nil {
		t.Fatal(err)
	}
	if cost.LogBytes < n*100 || cost.CPU <= 0 || cost.CPU > time.Minute {
		t.Errorf("%+v", cost)
	}
}
