package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt.example/client"
	"curt/internal/backend/kafka"
	"curt/internal/backend/sqlite/counts"
	"curt/internal/clicks/rollup"
	"curt/internal/config"
	"curt/internal/settings"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// moving is a curt move under way.
type moving struct {
	cmd   *exec.Cmd
	said  testkit.Lines
	ended chan error
}

func (m *moving) wait(t *testing.T) {
	t.Helper()
	if err := <-m.ended; err != nil {
		t.Fatalf("curt move: %v: %s", err, m.said.String())
	}
}

// beginMove begins a move of a folder to a plant.
func beginMove(t *testing.T, args ...string) *moving {
	t.Helper()
	m := &moving{cmd: exec.CommandContext(context.WithoutCancel(t.Context()), curttest.Binary(t), append([]string{"move"}, args...)...), ended: make(chan error, 1)}
	m.cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "CURT_") })
	m.cmd.Stdout, m.cmd.Stderr = &m.said, &m.said
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { m.ended <- m.cmd.Wait() }()
	return m
}

// captured waits until a server has so many clicks in its log.
func captured(t *testing.T, s *curttest.Server, n int) {
	t.Helper()
	within(t, 3*time.Minute, "clicks in the log", func() bool { return metric(t, s, "curt_clicks_captured_total") >= float64(n) })
}

// clicksOf returns what ClickHouse has counted of each code and day.
func (p *plant) clicksOf(t *testing.T) map[string]int64 {
	t.Helper()
	p.keepStore(t)
	all := map[string]int64{}
	for line := range strings.Lines(p.clickhouse.Exec(t, "SELECT code, toDate(at), sum(clicks) FROM "+p.database+".days WHERE domain != '*' GROUP BY code, at FORMAT TSV")) {
		var code, day string
		var n int64
		if _, err := fmt.Sscan(line, &code, &day, &n); err != nil {
			t.Fatal(err)
		}
		all[code+" "+day] = n
	}
	return all
}

// awayFromMidnight waits for the next day of UTC where this one is about to end: a test that counts clicks of days takes some
// minutes.
func awayFromMidnight(t *testing.T) {
	t.Helper()
	now := time.Now().UTC()
	if left := now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now); left < 10*time.Minute {
		t.Logf("waiting %v for midnight", left.Round(time.Second))
		time.Sleep(left)
	}
}

// emptyPlant has what a fleet needs, a topic, and the database of the links at a URL, and no server.
func emptyPlant(t *testing.T) (p *plant, links string) {
	t.Helper()
	p = &plant{kafka: testkit.StartKafka(t, 1), clickhouse: testkit.StartClickHouse(t), sites: map[string]*curttest.Server{}, works: map[string]*curttest.Server{}}
	p.database = p.clickhouse.Database(t)
	p.links = testkit.StartPostgres(t, testkit.PostgresConfig{})
	links = p.links.Database(t)
	analytics, events := p.clickhouse.URL(p.database), p.kafka.URL("clicks")
	p.env = []string{"CURT_LINKS=" + links, "CURT_EVENTS=" + events, "CURT_ANALYTICS=" + analytics, "CURT_RAW_RETENTION_OF=default=90d"}
	topic, err := kafka.Parse(events)
	if err == nil {
		_, err = kafka.Migrate(t.Context(), topic, kafka.Topic{Partitions: 4})
	}
	if err != nil {
		t.Fatal(err)
	}
	return p, links
}

// TestAFolderMovesIntoAFleet moves a data folder to PostgreSQL, ClickHouse and Kafka while visitors click, and kills
// the move again and again. Every click is in ClickHouse once, on its day: those of some days ago as sums, the others
// one by one.
func TestAFolderMovesIntoAFleet(t *testing.T) {
	testkit.Faults(t)
	awayFromMidnight(t)
	p, links := emptyPlant(t)
	analytics, events := p.clickhouse.URL(p.database), p.kafka.URL("clicks")
	data := t.TempDir()
	old := curttest.Start(t, curttest.Options{Data: data})
	api, err := client.New("http://"+old.Addr, client.WithKey(curttest.Key))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		l, err := api.Create(t.Context(), client.NewLink{LongURL: "https://example.com/a"})
		if err != nil {
			t.Fatal(err)
		}
		p.codes = append(p.codes, l.ShortCode)
	}
	want := map[string]int64{}
	click := func(s *curttest.Server, ahead time.Duration) {
		t.Helper()
		p.clickOn(t, s)
		for _, code := range p.codes {
			want[code+" "+time.Now().Add(ahead).UTC().Format(time.DateOnly)]++
		}
	}
	for i, ago := range []time.Duration{9, 5, 4, 1, 0} { // days
		old.SetClock(t, -ago*24*time.Hour)
		click(old, -ago*24*time.Hour)
		click(old, -ago*24*time.Hour)
		captured(t, old, (i+1)*2*len(p.codes)) // under this clock
	}
	within(t, 3*time.Minute, "the counts in the folder", func() bool {
		n, err := visited(t, old, p.codes)
		return err == nil && n == int64(len(p.codes))*10
	})

	args := []string{"--data=" + data, "--to=" + links, "--analytics=" + analytics, "--events=" + events}
	creators := old.CreateEvery(t, 2, "https://example.com/made", 20*time.Millisecond)
	creators.AwaitMade(t, 10)
	switched := func() bool { return strings.Contains(old.Log(), "links were moved") }
	kills, late := 0, false // as a busy machine kills
	// The moments are apart in proportion: on a fast machine, too, several are before the switch.
	for after := 15 * time.Millisecond; kills < 12 && !switched(); after += after / 2 {
		m, began := beginMove(t, args...), time.Now()
		select {
		case err := <-m.ended:
			t.Fatalf("curt move ended while its folder's server runs: %v: %s", err, m.said.String())
		case <-time.After(after):
		}
		_ = m.cmd.Process.Kill() // it runs
		if err := <-m.ended; err == nil {
			t.Error("a killed curt move ended without an error")
		}
		late = late || time.Since(began) > after+time.Second
		p.reviveHouse(t)
		kills++
		click(old, 0)
	}
	if kills < 3 && !late {
		t.Errorf("it was killed %d times: this shows nothing", kills)
	}
	m := beginMove(t, args...)
	within(t, 3*time.Minute, "the switch", func() bool { // servers over the database may start from then on
		select {
		case err := <-m.ended:
			t.Fatalf("curt move ended before the switch: %v: %s", err, m.said.String())
		default:
		}
		return switched() && strings.Contains(m.said.String(), "serve now")
	})
	at := time.Now()
	within(t, 3*time.Minute, "a create is refused", func() bool { return len(creators.Others()) > 0 })
	creators.Stop()
	var last time.Time
	for _, l := range creators.Made() {
		if l.At.After(last) {
			last = l.At
		}
	}
	// handover.Limit is 5 s; a busy machine may see it late.
	if refused := at.Sub(last); refused > 3*time.Minute {
		t.Errorf("creates were refused for %v", refused)
	} else {
		t.Logf("creates were refused for %v before the switch", refused)
	}
	for status, body := range creators.Others() {
		if status != http.StatusServiceUnavailable {
			t.Errorf("a create: %d %s", status, body)
		}
	}
	click(old, 0)
	s := p.start(t, t.TempDir(), "redirect")
	click(s, 0)
	p.worker(t, t.TempDir())
	fleet := p.startWith(t, t.TempDir(), "CURT_ROLE=api")
	old.Terminate(t)
	done := false
	for range 3 { // while the last clicks are sent
		time.Sleep(30 * time.Millisecond)
		_ = m.cmd.Process.Kill() // it may have ended
		if done = <-m.ended == nil; done {
			break
		}
		m = beginMove(t, args...)
	}
	if !done {
		m.wait(t)
	}

	sum := func() (n int64) {
		for _, clicks := range p.clicksOf(t) {
			n += clicks
		}
		return n
	}
	var all int64
	for _, n := range want {
		all += n
	}
	within(t, 3*time.Minute, "all clicks in ClickHouse", func() bool { return sum() >= all })
	got := p.clicksOf(t)
	for of, n := range want {
		if got[of] != n {
			t.Errorf("%s: %d clicks were counted, want %d", of, got[of], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d links and days are counted, want %d", len(got), len(want))
	}
	within(t, 3*time.Minute, "statistics of the fleet", func() bool {
		p.keepStore(t)
		n, err := visited(t, fleet, p.codes)
		return err == nil && n == all
	})
	if n := p.clickhouse.Exec(t, "SELECT count() - uniqExact(instance, sequence) FROM "+p.database+".clicks"); n != "0" {
		t.Errorf("%s clicks are there twice", n)
	}
	p.movesBack(t, []*curttest.Server{s, fleet}, []string{"--from=" + links, "--analytics=" + analytics}, want)
}

// movesBack ends a fleet and moves it to a folder, whose links and days are those of the fleet. Kills in between
// lose nothing.
func (p *plant) movesBack(t *testing.T, of []*curttest.Server, args []string, want map[string]int64) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "back")
	args = append(args, "--data="+data)
	refuses := func(why string) {
		t.Helper()
		m := beginMove(t, args...)
		if err := <-m.ended; err == nil || !strings.Contains(m.said.String(), why) {
			t.Errorf("it should end with %q: %v: %s", why, err, m.said.String())
		}
	}
	refuses("end them first")
	var tops []string
	api := of[len(of)-1]
	for _, code := range p.codes[:2] {
		tops = append(tops, statisticsOf(t, api, code))
	}
	p.endWorkers(t) // they insert no more
	for _, s := range of {
		s.Terminate(t)
	}
	testkit.AwaitNoServer(t, linksOf(args))
	refuses("not in ClickHouse yet")
	p.insertLast(t, linksOf(args))
	testkit.AwaitNoServer(t, linksOf(args))
	for after := 20 * time.Millisecond; after < 300*time.Millisecond; after += 40 * time.Millisecond {
		m := beginMove(t, args...)
		time.Sleep(after) // the moment of the kill is what differs, nothing is awaited
		_ = m.cmd.Process.Kill()
		if err := <-m.ended; err == nil {
			break
		}
		p.reviveHouse(t)
	}
	if _, err := os.Stat(data); err != nil {
		p.reviveHouse(t)
		beginMove(t, args...).wait(t)
	}
	folderHas(t, data, want)
	n := curttest.Start(t, curttest.Options{Data: data})
	for i, code := range p.codes[:2] {
		if diff := cmp.Diff(tops[i], statisticsOf(t, n, code)); diff != "" {
			t.Errorf("statistics of %s (-fleet +folder):\n%s", code, diff)
		}
	}
	p.clickOn(t, n)
	all := int64(len(p.codes))
	for _, n := range want {
		all += n
	}
	within(t, 3*time.Minute, "statistics of the folder", func() bool { n, err := visited(t, n, p.codes); return err == nil && n == all })
}

// endWorkers ends all workers.
func (p *plant) endWorkers(t *testing.T) {
	t.Helper()
	for _, w := range p.works {
		w.Terminate(t)
	}
	p.works = map[string]*curttest.Server{}
}

// insertLast has a worker insert the clicks of servers that have ended, and that they have.
func (p *plant) insertLast(t *testing.T, links string) {
	t.Helper()
	p.worker(t, t.TempDir())
	within(t, 3*time.Minute, "the last promises of servers", func() bool {
		p.keepStore(t)
		all, err := settings.SendersOf(t.Context(), config.Config{Links: links})
		return err == nil && len(all) == 0
	})
	p.endWorkers(t)
}

// folderHas fails unless a folder counts clicks of codes and days.
func folderHas(t *testing.T, data string, want map[string]int64) {
	t.Helper()
	snapshot, err := counts.TakeSnapshot(t.Context(), filepath.Join(data, "clicks.db"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	err = snapshot.CountedDays(t.Context(), 0, func(d rollup.LinkDay, c rollup.Counts) {
		if d.Key.Domain == "" && d.Key.Code != "" {
			got[string(d.Key.Code)+" "+time.Unix(int64(d.Day)*24*60*60, 0).UTC().Format(time.DateOnly)] = int64(c.Clicks)
		}
	})
	if err = errors.Join(err, snapshot.Close()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("clicks of days in the folder (-want +got):\n%s", diff)
	}
}

// reviveHouse starts ClickHouse again if it does not answer: the engine that the tests have may end, or hang, when a
// client is killed in a query.
func (p *plant) reviveHouse(t *testing.T) {
	t.Helper()
	p.keepStore(t)
	within, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := p.clickhouse.Ask(within, "SELECT 1"); err != nil {
		p.clickhouse.Kill(t)
		p.clickhouse.Again(t)
	}
}

// linksOf is the database of --from.
func linksOf(args []string) string { return strings.TrimPrefix(args[0], "--from=") }

// statisticsOf are the counts, visitors and values of a link, of its whole life by days.
func statisticsOf(t *testing.T, s *curttest.Server, code string) string {
	t.Helper()
	api, err := client.New("http://"+s.Addr, client.WithKey(curttest.Key))
	if err != nil {
		t.Fatal(err)
	}
	stats, err := api.Stats(t.Context(), code, client.StatsQuery{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent([]any{stats.TotalClicks, stats.HumanClicks, stats.BotClicks, stats.Previews, stats.VisitorDays, stats.LastClickedAt, stats.Top}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAFolderMovesIntoReplicas: what was counted of days before yesterday is in each server of ClickHouse, and so are
// the clicks since, by the group of each. Both count as complete, and either alone has the statistics.
func TestAFolderMovesIntoReplicas(t *testing.T) {
	testkit.Faults(t)
	awayFromMidnight(t)
	r := &replicas{of: []*testkit.ClickHouse{testkit.StartClickHouse(t), testkit.StartClickHouse(t)}}
	p := &plant{kafka: testkit.StartKafka(t, 1), clickhouse: r.of[0], sites: map[string]*curttest.Server{}, works: map[string]*curttest.Server{}}
	r.plant, p.houses, p.database = p, r.of, r.of[0].Database(t)
	r.of[1].Exec(t, "CREATE DATABASE "+p.database+" ENGINE = Atomic")
	p.links = testkit.StartPostgres(t, testkit.PostgresConfig{})
	links, events, analytics := p.links.Database(t), p.kafka.URL("clicks"), r.named(p.database, r.of...)
	p.env = []string{"CURT_LINKS=" + links, "CURT_EVENTS=" + events, analytics, "CURT_RAW_RETENTION_OF=default=90d"}
	topic, err := kafka.Parse(events)
	if err == nil {
		_, err = kafka.Migrate(t.Context(), topic, kafka.Topic{Partitions: 4})
	}
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	old := curttest.Start(t, curttest.Options{Data: data})
	for _, l := range old.MustCreate(t, 20) {
		p.codes = append(p.codes, l.Code)
	}
	want := map[string]int64{}
	for i, ago := range []time.Duration{5, 4, 1, 0} { // days
		old.SetClock(t, -ago*24*time.Hour)
		p.clickOn(t, old)
		for _, code := range p.codes {
			want[code+" "+time.Now().Add(-ago*24*time.Hour).UTC().Format(time.DateOnly)]++
		}
		captured(t, old, (i+1)*len(p.codes)) // under this clock
	}
	all := int64(len(p.codes)) * 4
	within(t, 3*time.Minute, "the counts in the folder", func() bool { n, err := visited(t, old, p.codes); return err == nil && n == all })
	old.Terminate(t)
	setting := strings.TrimPrefix(analytics, "CURT_ANALYTICS=")
	beginMove(t, "--data="+data, "--to="+links, "--analytics="+setting, "--events="+events).wait(t)
	p.worker(t, t.TempDir())
	fleet := p.startWith(t, t.TempDir(), "CURT_ROLE=api")
	r.filled(t, fleet, r.of...)
	for i, house := range r.of {
		p.clickhouse = house
		within(t, 3*time.Minute, "all clicks in each", func() bool {
			n := int64(0)
			for _, clicks := range p.clicksOf(t) {
				n += clicks
			}
			return n >= all
		})
		if diff := cmp.Diff(want, p.clicksOf(t)); diff != "" {
			t.Errorf("replica %d (-want +got):\n%s", i+1, diff)
		}
	}
	within(t, 3*time.Minute, "statistics of the fleet", func() bool {
		p.keepStore(t)
		n, err := visited(t, fleet, p.codes)
		return err == nil && n == all
	})
	r.of[0].Kill(t)
	p.houses = nil // p.clickhouse is the second
	within(t, 3*time.Minute, "statistics of the second alone", func() bool {
		p.keepStore(t)
		n, err := visited(t, fleet, p.codes)
		return err == nil && n == all
	})
	r.of[0].Again(t)
	p.houses = r.of
	p.movesBack(t, []*curttest.Server{fleet}, []string{"--from=" + links, "--analytics=" + setting}, want)
}
