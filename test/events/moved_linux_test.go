package events_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/backend/kafka"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// moving is a curt move under way.
type moving struct {
	cmd   *exec.Cmd
	said  strings.Builder // once it has ended
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

// clicksOf returns what ClickHouse has counted of each code and day.
func (p *plant) clicksOf(t *testing.T) map[string]int64 {
	t.Helper()
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

// TestAFolderMovesIntoAFleet moves a data folder to PostgreSQL, ClickHouse and Kafka while visitors click, and kills
// the move again and again. Every click is in ClickHouse once, on its day: those of some days ago as sums, the others
// one by one.
func TestAFolderMovesIntoAFleet(t *testing.T) {
	testkit.Faults(t)
	p := &plant{kafka: testkit.StartKafka(t, 1), clickhouse: testkit.StartClickHouse(t), sites: map[string]*curttest.Server{}, works: map[string]*curttest.Server{}}
	p.database = p.clickhouse.Database(t)
	p.links = testkit.StartPostgres(t, testkit.PostgresConfig{})
	links := p.links.Database(t)
	analytics, events := p.clickhouse.URL(p.database), p.kafka.URL("clicks")
	p.env = []string{"CURT_LINKS=" + links, "CURT_EVENTS=" + events, "CURT_ANALYTICS=" + analytics, "CURT_RAW_RETENTION_OF=default=90d"}
	topic, err := kafka.Parse(events)
	if err == nil {
		_, err = kafka.Migrate(t.Context(), topic, kafka.Topic{Partitions: 4})
	}
	if err != nil {
		t.Fatal(err)
	}

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
	for _, ago := range []time.Duration{9, 5, 4, 1, 0} { // days
		old.SetClock(t, -ago*24*time.Hour)
		click(old, -ago*24*time.Hour)
		click(old, -ago*24*time.Hour)
		time.Sleep(200 * time.Millisecond) // captured under this clock
	}
	within(t, time.Minute, "the counts in the folder", func() bool {
		n, err := visited(t, old, p.codes)
		return err == nil && n == int64(len(p.codes))*10
	})

	args := []string{"--data=" + data, "--to=" + links, "--analytics=" + analytics, "--events=" + events}
	kills := 0
	for after := 50 * time.Millisecond; kills < 12; after += 60 * time.Millisecond {
		m := beginMove(t, args...)
		select {
		case err := <-m.ended:
			t.Fatalf("curt move ended while its folder's server runs: %v: %s", err, m.said.String())
		case <-time.After(after):
		}
		_ = m.cmd.Process.Kill() // it runs
		if err := <-m.ended; err == nil {
			t.Error("a killed curt move ended without an error")
		}
		kills++
		click(old, 0)
	}
	m := beginMove(t, args...)
	within(t, time.Minute, "the switch", func() bool { return strings.Contains(old.Log(), "moved") })
	click(old, 0)
	s := p.start(t, t.TempDir(), "redirect")
	click(s, 0)
	p.worker(t, t.TempDir())
	fleet := p.startWith(t, t.TempDir(), "CURT_ROLE=api")
	old.Terminate(t)
	for range 3 { // while the last clicks are sent
		time.Sleep(30 * time.Millisecond)
		_ = m.cmd.Process.Kill() // it may have ended
		if err := <-m.ended; err == nil {
			break
		}
		m = beginMove(t, args...)
	}
	if m.cmd.ProcessState == nil || !m.cmd.ProcessState.Success() {
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
	within(t, 3*time.Minute, "statistics of the fleet", func() bool { n, err := visited(t, fleet, p.codes); return err == nil && n == all })
	if n := p.clickhouse.Exec(t, "SELECT count() - uniqExact(instance, sequence) FROM "+p.database+".clicks"); n != "0" {
		t.Errorf("%s clicks are there twice", n)
	}
}
