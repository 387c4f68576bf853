package cache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
	"curt/internal/link"
)

const modelLag = 3 * time.Second

// schedulesPerCheck makes 2,000 schedules of rapid's 100 checks: what a mutant of
// each rule of flight.go and changed.go needs to be found nearly always.
const schedulesPerCheck = 20

// step is one move of a schedule. Between two moves everything that can go on has
// gone on, so that a schedule is the whole interleaving.
type step struct {
	Kind string
	Key  int // of two
	N    int
}

// TestModel runs random schedules of look-ups, reads under way, writes, late
// announcements, a lagging replica and an absent store against a model that knows
// one thing: what was announced before a look-up ended.
func TestModel(t *testing.T) {
	steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
		return step{
			Kind: rapid.SampledFrom([]string{
				"look", "look", "look", "release", "release", "put", "put", "announce", "announce",
				"replica", "pass", "hour", "down", "up", "drop",
			}).Draw(r, "kind"),
			Key: rapid.IntRange(0, 1).Draw(r, "key"),
			N:   rapid.IntRange(0, 3).Draw(r, "n"),
		}
	}), 20, 60)
	rapid.Check(t, func(r *rapid.T) {
		for range schedulesPerCheck {
			if err := runModel(t, steps.Draw(r, "schedule"), rapid.Bool().Draw(r, "reads wait for their release")); err != nil {
				r.Fatal(err)
			}
		}
	})
}

func runModel(t *testing.T, schedule []step, held bool) (broken error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, held)
		defer m.close()
		for i, s := range schedule {
			m.apply(s)
			synctest.Wait()
			if broken = m.check(); broken != nil {
				broken = fmt.Errorf("after step %d %+v: %w", i, s, broken)
				return
			}
		}
	})
	return broken
}

type model struct {
	t         *testing.T
	cache     *cache.Tiered
	source    *cachetest.Source
	stop      context.CancelFunc
	ended     chan struct{}
	puts      map[link.Key][]time.Time // when each version was stored
	announced map[link.Key]link.Version
	gates     chan chan struct{} // reads that wait
	waiting   []chan struct{}
	results   chan result
}

type result struct {
	key link.Key
	got link.Target
	err error
}

func newModel(t *testing.T, held bool) *model {
	t.Helper()
	m := &model{
		t: t, source: cachetest.NewSource(), ended: make(chan struct{}),
		puts: map[link.Key][]time.Time{}, announced: map[link.Key]link.Version{},
		gates: make(chan chan struct{}, 1000), results: make(chan result, 1000),
	}
	m.cache = newTiered(t, cache.Config{Lag: modelLag}, m.source)
	if held {
		wait := func(ctx context.Context, _ link.Key) error {
			gate := make(chan struct{})
			m.gates <- gate
			select {
			case <-gate:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		m.source.OnLookup(wait)
		m.source.OnGet(wait)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	go func() { defer close(m.ended); _ = m.cache.Run(ctx) }()
	return m
}

func (m *model) close() {
	m.source.OnLookup(nil)
	m.source.OnGet(nil)
	m.stop()
	time.Sleep(10 * time.Second) // every load meets its deadline
	<-m.ended
	synctest.Wait()
}

func (m *model) apply(s step) {
	k := key(fmt.Sprint("k", s.Key))
	switch s.Kind {
	case "look":
		go func() {
			got, err := m.cache.Lookup(context.Background(), k)
			m.results <- result{k, got, err}
		}()
	case "release":
		m.release(s.N)
	case "put":
		m.source.Put(k, target("https://a.example/"))
		m.puts[k] = append(m.puts[k], time.Now())
		if s.N < 3 { // the slowest replica is the rule, because it finds the most
			m.source.SetReplica(k, m.visible(k))
		}
		m.replicate()
	case "announce":
		if n := len(m.puts[k]); n > 0 {
			m.announce(k, link.Version(max(1, n-s.N)))
		}
	case "replica":
		m.source.SetReplica(k, max(m.visible(k), len(m.puts[k])-s.N))
	case "pass":
		time.Sleep([]time.Duration{time.Millisecond, 50 * time.Millisecond, 2 * time.Second, modelLag}[s.N])
		m.replicate()
	case "hour":
		time.Sleep(time.Hour)
		m.replicate()
	case "down":
		m.source.SetDown(errAway)
	case "up":
		m.source.SetDown(nil)
	case "drop":
		for k, puts := range m.puts {
			m.announced[k] = link.Version(len(puts))
		}
		m.cache.DropAll()
	}
}

func (m *model) announce(k link.Key, v link.Version) {
	m.cache.Changed(link.Change{Key: k, Version: v})
	m.announced[k] = max(m.announced[k], v)
}

// release lets the n-th read under way answer.
func (m *model) release(n int) {
	for len(m.gates) > 0 {
		m.waiting = append(m.waiting, <-m.gates)
	}
	if n < len(m.waiting) {
		close(m.waiting[n])
		m.waiting = append(m.waiting[:n], m.waiting[n+1:]...)
	}
}

// visible is how many versions of k even the slowest replica knows by now.
func (m *model) visible(k link.Key) int {
	n := 0
	for _, at := range m.puts[k] {
		if time.Since(at) >= modelLag {
			n++
		}
	}
	return max(n, min(1, len(m.puts[k])))
}

// replicate keeps the replicas within their lag.
func (m *model) replicate() {
	for k := range m.puts {
		if m.visible(k) == len(m.puts[k]) {
			m.source.SetReplica(k, -1)
			continue
		}
		m.source.CatchUp(k, m.visible(k))
	}
}

// check looks at every look-up that ended since the last step: the announcements of
// the steps before bind it, whenever it began.
func (m *model) check() error {
	for len(m.results) > 0 {
		r := <-m.results
		least, newest := m.announced[r.key], link.Version(len(m.puts[r.key]))
		switch {
		case r.err != nil && !errors.Is(r.err, link.ErrNotFound):
			continue // an error is never wrong, only unwelcome
		case r.got.Version < least:
			return fmt.Errorf("%s: version %d (%w), but %d was announced", r.key, r.got.Version, r.err, least)
		case r.got.Version > newest:
			return fmt.Errorf("%s: version %d of %d", r.key, r.got.Version, newest)
		}
	}
	return nil
}
