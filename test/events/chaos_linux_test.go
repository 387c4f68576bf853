package events_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// plan is how often what dies, and how much is clicked at least.
type plan struct {
	kills, naps, brokers, stores, sites, stalls int
	every                                       time.Duration // of each visitor
	clicks                                      int64
	sample                                      time.Duration // how often complete_until is looked at
}

func planned() plan {
	if curttest.Long() {
		return plan{kills: 20, naps: 3, brokers: 3, stores: 10, sites: 3, stalls: 3, every: 4 * time.Millisecond, clicks: 2_000_000, sample: time.Second}
	}
	return plan{kills: 3, naps: 1, brokers: 1, stores: 1, sites: 1, stalls: 1, every: 20 * time.Millisecond, clicks: 40_000, sample: 300 * time.Millisecond}
}

// TestEveryClickCountsOnce has servers count through Kafka while all that takes part dies, and
// compares what ClickHouse has with the click logs. Meanwhile a day ends, clicks of other days
// come, and a click log is sent a second time.
func TestEveryClickCountsOnce(t *testing.T) {
	testkit.Faults(t)
	p := build(t, 3, 3, 2)
	how := planned()
	midnight := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	p.setClocks(t, time.Until(midnight.Add(-10*time.Second)))
	w := p.watch(t, how.sample)
	v := p.visit(t.Context(), 15, how.every)
	within(t, 3*time.Minute, "plant that is well", func() bool { return v.answered.Load() > 500 && !w.latest().IsZero() })
	faults := p.faults(t, how, w)
	for i, f := range faults {
		if i == len(faults)/2 {
			within(t, 3*time.Minute, "midnight", func() bool { return p.now().After(midnight.Add(2 * time.Second)) })
			p.sendLate(t, midnight)
		}
		f()
		p.keepStore(t)
		time.Sleep(rand.N(time.Second)) // so that faults meet and do not
	}
	within(t, 15*time.Minute, "many clicks", func() bool { p.keepStore(t); return v.answered.Load() >= how.clicks })
	p.sendAgain(t)
	answered := v.end()
	began := time.Now()
	// Nobody repeats the block that workers took last of a partition, which is all that came while its
	// worker slept: there is to be another behind it, in each of them.
	p.arrive(t, 10*time.Minute)
	answered += p.clickEach(t)
	p.settle(t)
	t.Logf("%d answers; all of it was in ClickHouse %v later", answered, time.Since(began).Round(100*time.Millisecond))
	w.judge(t, p.logged(t))
	p.compare(t, answered)
	if _, repeated, _ := p.worked(t); repeated == 0 {
		t.Error("no click was in Kafka twice")
	}
	p.replay(t, "0 inserted", "--partition", "3")
	p.clickhouse.Exec(t, "ALTER TABLE "+p.database+".clicks DELETE WHERE time < now() - INTERVAL 3 DAY SETTINGS mutations_sync = 1")
	p.replay(t, fmt.Sprintf("%d inserted", lateEach))
	p.equal(t)
}

// replay brings clicks from Kafka to ClickHouse once more, where they are missing.
func (p *plant) replay(t *testing.T, want string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), curttest.Binary(t), append([]string{"clicks", "replay", "--yes"}, args...)...)
	c.Env = append([]string{"CURT_ROLE=worker"}, p.env...)
	if said, err := c.CombinedOutput(); err != nil || !strings.Contains(string(said), want) {
		t.Errorf("curt clicks replay %v: %v, want that %s: %s", args, err, want, said)
	}
}

// faults returns what is to happen, in no order.
func (p *plant) faults(t *testing.T, how plan, w *watcher) (all []func()) {
	t.Helper()
	add := func(n int, f func()) {
		for range n {
			all = append(all, f)
		}
	}
	add(how.kills, func() { p.killWorker(t) })
	add(how.naps, func() { p.napWorker(t) })
	add(how.brokers, func() { p.killBroker(t) })
	add(how.stores, func() { p.killStore(t) })
	add(how.sites, func() { p.killSite(t) })
	add(how.stalls, func() { p.stallSite(t, w) })
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (p *plant) killWorker(t *testing.T) {
	t.Helper()
	data, s := p.any(p.works)
	t.Log("a worker dies")
	s.Kill()
	p.worker(t, data)
}

// napWorker stops a worker for longer than its session, so that others take its partitions,
// and wakes it: it believes that they are its own.
func (p *plant) napWorker(t *testing.T) {
	t.Helper()
	_, s := p.any(p.works)
	t.Log("a worker sleeps")
	if err := syscall.Kill(s.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(14 * time.Second)
	if err := syscall.Kill(s.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

func (p *plant) killBroker(t *testing.T) {
	t.Helper()
	t.Log("a broker dies")
	b := p.kafka.Brokers[rand.IntN(len(p.kafka.Brokers))]
	b.Kill(t)
	time.Sleep(2 * time.Second)
	b.Again(t)
}

func (p *plant) killStore(t *testing.T) {
	t.Helper()
	t.Log("ClickHouse dies")
	p.clickhouse.Kill(t)
	time.Sleep(rand.N(2 * time.Second))
	p.clickhouse.Again(t)
}

// keepStore starts ClickHouse again when it has ended by itself, as a supervisor does: as a
// library it may die of a fatal error on what a kill left behind, or of a client that comes before
// its databases are there.
func (p *plant) keepStore(t *testing.T) {
	t.Helper()
	for _, house := range append(slices.Clone(p.houses), p.clickhouse) {
		if !house.Lives() {
			house.Again(t)
			t.Logf("ClickHouse ended by itself; it said last: %s", house.Said())
		}
	}
}

func (p *plant) killSite(t *testing.T) {
	t.Helper()
	data, s := p.any(p.sites)
	t.Log("a server that follows links dies")
	s.Kill()
	p.site(t, data)
	p.noteDeath(t, data)
}

// noteDeath adds what a server that was killed took with it, as its successor says.
func (p *plant) noteDeath(t *testing.T, data string) {
	t.Helper()
	n, unknown := metric(t, p.sites[data], "curt_clicks_killed_total"), metric(t, p.sites[data], "curt_clicks_killed_unknown")
	if n < 0 || unknown != 0 {
		t.Errorf("a killed server lost %v clicks; it does not know: %v", n, unknown)
	}
	p.deaths, p.killed = p.deaths+1, p.killed+int64(n)
}

// stallSite stops a server that follows links, which has clicks that nobody else knows of:
// nothing may be said to be complete any more.
func (p *plant) stallSite(t *testing.T, w *watcher) {
	t.Helper()
	_, s := p.any(p.sites)
	t.Log("a server that follows links stalls")
	if err := syscall.Kill(s.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := p.now()
	time.Sleep(4 * time.Second)
	if said := w.latest(); said.After(stopped) {
		t.Errorf("a server has stood still since %v, and clicks are said to be complete up to %v", stopped, said)
	}
	if err := syscall.Kill(s.PID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	within(t, 3*time.Minute, "complete_until after a stall", func() bool { p.keepStore(t); return w.latest().After(stopped) })
}

// sendAgain has a server die and forget how far its click log was sent, so that all of it is
// sent once more.
func (p *plant) sendAgain(t *testing.T) {
	t.Helper()
	data := p.visited[0]
	t.Log("a click log is sent again")
	p.sites[data].Kill()
	if err := os.Remove(filepath.Join(data, "clicks.shipped")); err != nil {
		t.Fatal(err)
	}
	p.site(t, data)
	p.noteDeath(t, data)
}
