package events_test

import (
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// lateBy is how late ClickHouse says everything while it is slow.
const lateBy = 10 * time.Second

// outages are how long who is away.
type outages struct{ well, kafka, slow, refusing time.Duration }

func spans() outages {
	if curttest.Long() {
		return outages{2 * time.Minute, 5 * time.Minute, 2 * time.Minute, time.Minute}
	}
	return outages{4 * time.Second, 4 * time.Second, 6 * time.Second, 4 * time.Second}
}

// watched is a plant under even load of which one part after the other goes away.
type watched struct {
	*plant
	v     *visitors
	usual int64 // the most clicks that are not in ClickHouse yet while all is well
	well  []time.Duration
}

// TestAway stops Kafka under even load: it takes connections and answers nobody. Then
// ClickHouse says everything ten seconds late, and then it refuses connections. No visitor may
// notice, and each click counts once afterwards.
func TestAway(t *testing.T) {
	testkit.Faults(t)
	house := testkit.StartClickHouse(t)
	way := testkit.SpoilClickHouse(t, house)
	p := &watched{plant: buildBefore(t, house, way.ClickHouse, 1, 2, 1)}
	span := spans()
	p.v = p.visit(t.Context(), 10, 20*time.Millisecond)
	within(t, 3*time.Minute, "clicks in ClickHouse", func() bool { return p.there(t) > 1000 })
	time.Sleep(2 * time.Second) // of what waited while the worker began
	p.v.took()
	for end := time.Now().Add(span.well); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		p.usual = max(p.usual, p.v.answered.Load()-p.there(t))
	}
	p.well = p.v.took()
	soon := p.soon(t, 4)
	t.Logf("clicks were in the statistics after %v", soon)

	broker := p.kafka.Brokers[0]
	p.away(t, "Kafka", span.kafka, func(on bool) {
		broker.Signal(t, map[bool]syscall.Signal{true: syscall.SIGSTOP, false: syscall.SIGCONT}[on])
	})
	p.away(t, "ClickHouse's answers", span.slow, func(on bool) {
		way.Slow(t, map[bool]time.Duration{true: lateBy}[on])
	})
	p.away(t, "ClickHouse", span.refusing, func(on bool) { way.Refuse(t, on) })
	answered := p.v.end()
	p.settle(t)
	p.compare(t, answered)
}

// there returns how many clicks are in ClickHouse; none while it does not say.
func (p *watched) there(t *testing.T) (n int64) {
	t.Helper()
	p.keepStore(t)
	text, err := p.clickhouse.Ask(t.Context(), "SELECT count() FROM "+p.database+".clicks")
	if err == nil {
		n, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil {
		t.Log(err)
	}
	return n
}

// away takes something away for a time. Visits may take no longer meanwhile, clicks wait, and
// all that have come by then are in ClickHouse soon after it is there again.
func (p *watched) away(t *testing.T, what string, span time.Duration, set func(on bool)) {
	t.Helper()
	set(true)
	p.v.took()
	before, began := p.v.answered.Load(), time.Now()
	time.Sleep(span)
	within(t, 3*time.Minute, "visits without "+what, func() bool { return p.v.answered.Load() >= before+500 })
	answered, times := p.v.answered.Load(), p.v.took()
	waiting := answered - p.there(t)
	wasAway := time.Since(began) < lateBy // who only says everything late has taken clicks after that
	set(false)
	caught := within(t, 2*span+3*time.Minute, "clicks in ClickHouse after "+what, func() bool { return p.there(t) >= answered })
	t.Logf("without %s for %v: p99 of visits %v, %v before, the medians of windows %v and %v; %d clicks waited, %d at the most before; they were in ClickHouse %v later",
		what, span, high(times), high(p.well), steady(times), steady(p.well), waiting, p.usual, caught.Round(10*time.Millisecond))
	if wasAway && waiting < (answered-before)/2 {
		t.Errorf("without %s %d of %d clicks waited: it was not away", what, waiting, answered-before)
	}
	if !curttest.Long() {
		// A machine that has other things to do makes some visits slow, and catching up, too: a server that
		// waits for what is away would take seconds for each visit.
		middle := func(all []time.Duration) time.Duration { return share(slices.Sorted(slices.Values(all)), 50) }
		if got, most := middle(times), 5*middle(p.well)+time.Second; got > most {
			t.Errorf("without %s %d visits took %v at the median, %d took %v before", what, len(times), got, len(p.well), middle(p.well))
		}
		return
	}
	if caught > 2*span {
		t.Errorf("without %s for %v: clicks came to ClickHouse %v later", what, span, caught)
	}
	if got, most := steady(times), steady(p.well)*11/10+100*time.Microsecond; got > most || len(times) < len(p.well)/3 {
		t.Errorf("without %s %d visits took %v at the 99th percentile, %d took %v before", what, len(times), got, len(p.well), steady(p.well))
	}
}

// steady returns the median of the 99th percentiles of runs of 500 visits: what else a machine
// does now and then does not show in it.
func steady(times []time.Duration) time.Duration {
	var all []time.Duration
	for window := range slices.Chunk(times, 500) {
		all = append(all, high(window))
	}
	slices.Sort(all)
	return share(all, 50)
}

func high(all []time.Duration) time.Duration { return share(slices.Sorted(slices.Values(all)), 99) }

// share returns below what a share of sorted times is, in percent; zero of none.
func share(all []time.Duration, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	return all[len(all)*percent/100].Round(10 * time.Microsecond)
}

// took returns how long visits have taken since it was asked last, in their order.
func (v *visitors) took() []time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.times
	v.times = nil
	return all
}
