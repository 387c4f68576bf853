package dynamodb_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/internal/backend/dynamodb"
	"curt/internal/backend/dynamodb/ddb"
	"curt/internal/cache"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// hotCode looks one code up 100,000 times, by 64 callers, through the cache of a server.
func hotCode(t *testing.T, s *server) {
	p := startProxy(t, s.DynamoDB)
	at := s.fresh(t)
	at.Endpoint = p.URL
	store := s.open(t, at)
	l, err := store.Create(t.Context(), linktest.Chosen(1, "viral"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := cache.New(cache.Config{Lag: dynamodb.MaxLag}, store)
	if err != nil {
		t.Fatal(err)
	}
	before := p.Asked()
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for range 100_000 / 64 {
				if _, err := c.Lookup(t.Context(), l.Key); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	if reads := p.Asked() - before; reads != 1 {
		t.Errorf("100,000 look-ups of one code read the table %d times, want 1", reads)
	}
}

// Prices are those of on-demand tables in us-east-1, in dollars, as listed since 1 November 2024.
const (
	perWrites  = 0.625 // a million units
	perReads   = 0.125 // a million units
	perStorage = 0.25  // a GB and month
)

// cost is what an operation takes.
type cost struct {
	requests      int
	reads, writes float64
}

// spending measures operations of one store, one after the other.
type spending struct {
	mu  sync.Mutex
	now cost // guarded by mu
}

func (m *spending) add(u ddb.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if u.Table != "" {
		m.now.reads += u.Reads
		m.now.writes += u.Writes
	}
	m.now.requests++
}

func (m *spending) of(t *testing.T, call func() error) cost {
	t.Helper()
	m.mu.Lock()
	m.now = cost{}
	m.mu.Unlock()
	if err := call(); err != nil {
		t.Error(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// units measures what operations cost, by ReturnConsumedCapacity, and holds the table of
// docs/capacity.md to it, with the bill for the load of article 003. Run it with -v to see both.
func units(t *testing.T, s *server) {
	var m spending
	at := s.fresh(t)
	store, err := dynamodb.OpenLinks(t.Context(), dynamodb.Config{Address: at, CreatesDelay: delay, Meter: m.add, CallTime: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	n := 0
	next := func(kind link.CodeKind) link.Link {
		n++
		l := linktest.Counted(link.Code(fmt.Sprintf("Cost%03d", n)), uint64(n), time.Now())
		l.CodeKind = kind
		return l
	}
	known, err := store.Create(t.Context(), next(link.Counted))
	if err != nil {
		t.Fatal(err)
	}
	bounded := next(link.Counted)
	bounded.MaxClicks = 100
	if bounded, err = store.Create(t.Context(), bounded); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := store.Create(t.Context(), next(link.Counted)); err != nil {
			t.Fatal(err)
		}
	}
	drain := func() error { _, err := store.Head(t.Context()); return err }
	measured := map[string]cost{}
	measure := func(name string, call func() error) { measured[name] = m.of(t, call) }
	measure("a redirect that no cache answers", func() error { _, err := store.Lookup(t.Context(), known.Key); return err })
	measure("an unknown code", func() error { _, _ = store.Lookup(t.Context(), link.Key{Code: "none"}); return nil })
	measure("a create, generated", func() error { _, err := store.Create(t.Context(), next(link.Counted)); return err })
	measure("a create, chosen", func() error { _, err := store.Create(t.Context(), next(link.Chosen)); return err })
	measure("its entry in the change log, numbered alone", drain)
	twin := next(link.Counted)
	measure("a create with `dedupe`", func() error { _, _, err := store.FindOrCreate(t.Context(), twin, time.Now()); return err })
	measure("`dedupe`, found", func() error {
		again := next(link.Counted)
		again.Destination = twin.Destination
		_, _, err := store.FindOrCreate(t.Context(), again, time.Now())
		return err
	})
	measure("a change", func() error {
		known.Title = "changed"
		_, err := store.Replace(t.Context(), known, link.Edit{})
		return err
	})
	measure("a click of a link with `max_clicks`", func() error { _, err := store.Spend(t.Context(), bounded.Key, 1); return err })
	measure("a page of 20 links of a workspace", func() error {
		_, err := store.List(t.Context(), link.Filter{Workspace: link.WorkspaceDefault}, link.Page{Limit: 20})
		return err
	})
	if err := drain(); err != nil {
		t.Fatal(err)
	}
	measure("a poll of the change log, nothing new", func() error { _, _, err := store.Changes(t.Context(), "2", 100); return err })
	want := costTable(measured) + bill(measured)
	t.Log("\n" + want)
	text, err := os.ReadFile("../../../docs/capacity.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(want) {
		if !strings.Contains(string(text), line) {
			t.Errorf("docs/capacity.md lacks %s", line)
		}
	}
}

func costTable(measured map[string]cost) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(measured)) {
		c := measured[name]
		fmt.Fprintf(&b, "| %s | %d | %g | %g | $%.2f |\n", name, c.requests, c.reads, c.writes, c.reads*perReads+c.writes*perWrites)
	}
	return b.String()
}

// The load of article 003, and how many redirects no cache answers: 2 %.
const (
	createsADay   = 10e6
	redirectsADay = 1e9
	missed        = 0.02
	bytesOfALink  = 500 // and as much in each of three indexes, with 100 of overhead
)

func bill(measured map[string]cost) string {
	create, redirect := measured["a create, generated"], measured["a redirect that no cache answers"]
	of := func(c cost, times float64) float64 { return times / 1e6 * (c.reads*perReads + c.writes*perWrites) }
	creates, redirects := of(create, createsADay), of(redirect, redirectsADay*missed)
	all := of(redirect, redirectsADay)
	month := 4 * (bytesOfALink + 100) * createsADay * 30 / 1e9 * perStorage
	return fmt.Sprintf("| 10 million creates a day | $%.2f a day |\n| 1 billion redirects a day, 2 %% of them not in a cache | $%.2f a day |\n"+
		"| the same without any cache | $%.2f a day |\n| links of one month, with their indexes | $%.0f a month |\n", creates, redirects, all, month)
}
