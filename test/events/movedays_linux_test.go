package events_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/backend/clickhouse/reconcile"
	"curt/internal/backend/sqlite/moveout"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// slowly is how late answers of ClickHouse are while days are moved one by one.
const slowly = 200 * time.Millisecond

// oldest is how many days ago the first clicks of a folder were.
const oldest = 9

// clickDaily clicks on each code of a folder on every day up to today, and returns the clicks of codes and days.
func (p *plant) clickDaily(t *testing.T, data string) map[string]int64 {
	t.Helper()
	old := curttest.Start(t, curttest.Options{Data: data})
	for _, l := range old.MustCreate(t, 20) {
		p.codes = append(p.codes, l.Code)
	}
	want, all := map[string]int64{}, int64(0)
	for ago := time.Duration(oldest); ago >= 0; ago-- {
		old.SetClock(t, -ago*24*time.Hour)
		all += p.clickOn(t, old)
		for _, code := range p.codes {
			want[code+" "+time.Now().Add(-ago*24*time.Hour).UTC().Format(time.DateOnly)]++
		}
		within(t, 3*time.Minute, "clicks of a day", func() bool { n, err := visited(t, old, p.codes); return err == nil && n == all })
	}
	if code, _ := old.Terminate(t); code != 0 {
		t.Fatalf("ended with %d", code)
	}
	return want
}

// killBetweenDays kills a move of statistics each time that it has brought further days, until it was killed three
// times, and fails if that was at the end, or if a later run began anew. brought is how many days there are.
func (p *plant) killBetweenDays(t *testing.T, all int, brought func() int, args ...string) {
	t.Helper()
	before := 0
	for range 3 {
		m := beginMove(t, args...)
		within(t, 3*time.Minute, "further days of statistics", func() bool {
			select {
			case err := <-m.ended:
				t.Fatalf("curt move ended with %d of %d days: %v: %s", brought(), all, err, m.said.String())
			default:
			}
			return brought() > before
		})
		_ = m.cmd.Process.Kill() // it runs
		if err := <-m.ended; err == nil {
			t.Fatal("it was done before it was killed")
		}
		p.reviveHouse(t)
		now := 0
		within(t, 3*time.Minute, "the days that were brought", func() bool { now = brought(); return now > before })
		if now >= all {
			t.Fatalf("killed with %d of %d days, after %d", now, all, before)
		}
		t.Logf("killed with %d of %d days", now, all)
		before = now
	}
}

// TestAMoveOfStatisticsGoesOnBetweenDays kills a move of statistics to ClickHouse three times behind a day that it has
// brought, and the move back likewise. Each run goes on with the next day, and both sides have every click once, on its day.
func TestAMoveOfStatisticsGoesOnBetweenDays(t *testing.T) {
	testkit.Faults(t)
	awayFromMidnight(t)
	p, links := emptyPlant(t)
	data := t.TempDir()
	want := p.clickDaily(t, data)
	slow := testkit.SpoilClickHouse(t, p.clickhouse) // a day takes several answers: it is seen before the next one
	slow.Slow(t, slowly)
	store := p.store(t)
	imports := reconcile.ImportsOf(store.Tables)
	brought := func() int {
		all, err := imports.Days(t.Context())
		if err != nil {
			t.Logf("read the days: %v", err) // it begins again
		}
		return len(all)
	}
	to := []string{"--data=" + data, "--to=" + links, "--analytics=" + slow.URL(p.database), "--events=" + p.kafka.URL("clicks")}
	p.killBetweenDays(t, oldest-1, brought, to...) // today and yesterday go as clicks
	slow.Slow(t, 0)
	beginMove(t, to...).wait(t)
	p.worker(t, t.TempDir())
	var all int64
	for _, n := range want {
		all += n
	}
	within(t, 3*time.Minute, "all clicks in ClickHouse", func() bool {
		n := int64(0)
		for _, clicks := range p.clicksOf(t) {
			n += clicks
		}
		return n >= all
	})
	if diff := cmp.Diff(want, p.clicksOf(t)); diff != "" {
		t.Errorf("clicks of days in ClickHouse (-want +got):\n%s", diff)
	}

	within(t, 3*time.Minute, "the promise that the folder has no more clicks", func() bool {
		progress, err := store.Progress(t.Context(), time.Now())
		return err == nil && progress.Instances == 0
	})
	p.endWorkers(t)
	testkit.AwaitNoServer(t, links)
	folder := filepath.Join(t.TempDir(), "back")
	slow.Slow(t, slowly)
	from := []string{"--from=" + links, "--analytics=" + slow.URL(p.database), "--data=" + folder}
	p.killBetweenDays(t, oldest+1, func() int {
		c, err := moveout.OpenCounts(t.Context(), filepath.Join(folder+".partial", "clicks.db"))
		if err != nil {
			return 0 // there is none yet
		}
		defer c.Close() //nolint:errcheck // it was read
		return int(c.State.Generation)
	}, from...)
	slow.Slow(t, 0)
	beginMove(t, from...).wait(t) // it compares both sides
	folderHas(t, folder, want)
	n := curttest.Start(t, curttest.Options{Data: folder})
	within(t, 3*time.Minute, "statistics of the folder", func() bool { n, err := visited(t, n, p.codes); return err == nil && n == all })
}
