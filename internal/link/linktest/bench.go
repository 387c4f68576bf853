package linktest

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"curt/internal/link"
)

// benchWriters is how many callers create at once: the connections of the bench over
// HTTP.
const benchWriters = 64

// Bench measures a driver: durable creates by 64 callers, creates in batches, and
// look-ups of what is there. codes returns the code of the n-th counted link of s.
func Bench(b *testing.B, h Harness, codes func(s link.Store) func(n uint64) link.Code) {
	b.Run("create by 64", func(b *testing.B) {
		s := h.Open(b)
		benchCreate(b, s, codes(s), 0)
	})
	if h.Features.Batcher {
		b.Run("create in batches of 1000", func(b *testing.B) {
			s := h.Open(b)
			code, n := codes(s), uint64(0)
			for b.Loop() {
				Fill(b, s, code, n, n+1000)
				n += 1000
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "links/s")
		})
	}
	b.Run("lookup", func(b *testing.B) {
		s := h.Open(b)
		code := codes(s)
		const links = 100_000
		Fill(b, s, code, 0, links)
		b.ResetTimer()
		BenchLookup(b, s, code, links)
	})
}

// BenchSized measures creates and look-ups on a store that already holds the first
// links that codes names.
func BenchSized(b *testing.B, s link.Store, code func(n uint64) link.Code, links uint64) {
	b.Run("create by 64", func(b *testing.B) { benchCreate(b, s, code, links) })
	b.Run("lookup", func(b *testing.B) { BenchLookup(b, s, code, links) })
}

// benchCreate creates b.N links from the first on and reports the rate and the
// slowest percent. Repeated calls with one store go on behind each other's links.
func benchCreate(b *testing.B, s link.Store, code func(n uint64) link.Code, first uint64) {
	for errIsTaken(b, s, code(first)) {
		first += 1_000_000
	}
	var next atomic.Uint64
	next.Store(first)
	var wg sync.WaitGroup
	took := make([][]time.Duration, benchWriters)
	b.ResetTimer()
	for i := range benchWriters {
		wg.Go(func() {
			for {
				n := next.Add(1) - 1
				if n >= first+uint64(b.N) {
					return
				}
				start := time.Now()
				if _, err := s.Create(b.Context(), Counted(code(n), n, start)); err != nil {
					b.Errorf("create: %v", err)
					return
				}
				took[i] = append(took[i], time.Since(start))
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "links/s")
	reportP99(b, slices.Concat(took...))
}

func errIsTaken(b *testing.B, s link.Store, c link.Code) bool {
	_, err := s.Lookup(b.Context(), link.Key{Code: c})
	return err == nil
}

// BenchLookup looks up links of a store at random, one after the other: each is a
// redirect that no cache answered.
func BenchLookup(b *testing.B, s link.Store, code func(n uint64) link.Code, links uint64) {
	var took []time.Duration
	for b.Loop() {
		k := link.Key{Code: code(mathrand.Uint64N(links))}
		start := time.Now()
		if _, err := s.Lookup(b.Context(), k); err != nil {
			b.Fatalf("look up %s: %v", k, err)
		}
		took = append(took, time.Since(start))
	}
	reportP99(b, took)
}

func reportP99(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	if len(took) > 0 {
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	}
}

// Fill creates the links from first up to end in batches, the way to a store of ten
// million. The store must be a link.Batcher.
func Fill(t testing.TB, s link.Store, code func(n uint64) link.Code, first, end uint64) {
	t.Helper()
	batch := make([]link.Link, 0, 1000)
	for n := first; n < end; n++ {
		batch = append(batch, Counted(code(n), n, time.Now()))
		if len(batch) == cap(batch) || n+1 == end {
			fill(t, s, batch)
			batch = batch[:0]
		}
	}
}

// Kind returns link.Counted, or link.Chosen.
func Kind(counted bool) link.CodeKind {
	if counted {
		return link.Counted
	}
	return link.Chosen
}

// Counted returns a link as the write path makes them, with a destination of its own.
func Counted(code link.Code, n uint64, now time.Time) link.Link {
	now = now.UTC().Truncate(time.Millisecond)
	id, err := link.NewID(now, rand.Reader)
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	return link.Link{
		ID: id, Key: link.Key{Code: code}, Workspace: link.WorkspaceDefault, CodeKind: link.Counted,
		Destination: fmt.Sprintf("https://example.com/articles/2026/03/%d?utm_source=newsletter", n),
		Status:      link.Active, Safety: link.Clean, Redirect: 302, NoIndex: true,
		Created: now, Updated: now, CreatedBy: "0190a0e4-5b6c-7def-8123-456789abcdef",
	}
}
