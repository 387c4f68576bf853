package linkservice_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"time"

	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/shorten"
	"curt/internal/shorten/linkservice"
)

// few is a source of 4,000 numbers, so that codes collide all the time. It is safe
// for many goroutines, as the top-level functions of math/rand/v2 are.
type few struct{}

func (few) Read(p []byte) (int, error) {
	clear(p)
	binary.LittleEndian.PutUint64(p, mathrand.Uint64N(4000)<<40)
	return len(p), nil
}

// knows is what the filter of the cache is to a Hash.
type knows struct {
	mu    sync.Mutex
	codes map[link.Code]bool // guarded by mu
}

func (k *knows) add(c link.Change) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.codes[c.Key.Code] = true
}

// Query implements codegen.Issued.
func (*knows) Query(_ context.Context, codes ...link.Code) []bool { return make([]bool, len(codes)) }

// Contains implements codegen.Issued.
func (k *knows) Contains(code link.Code) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.codes[code]
}

// likely are the strategies whose codes may be taken, as curt serve puts them
// together.
func likely(length int) map[string]func(*linkservice.Config) {
	return map[string]func(*linkservice.Config){
		"random": func(c *linkservice.Config) { c.Codes = codegen.NewRandom(rand.Reader, length) },
		"random in a crowded space": func(c *linkservice.Config) {
			c.Codes = codegen.NewRandom(few{}, length)
		},
		"hash": func(c *linkservice.Config) {
			k := &knows{codes: map[link.Code]bool{}}
			c.Announce = k.add
			c.Strategy, c.Codes = "hash", codegen.NewHash(codegen.HashConfig{Key: [16]byte{7}, Length: length, Issued: k, Random: rand.Reader})
		},
		"hash that knows nothing": func(c *linkservice.Config) {
			c.Strategy, c.Codes = "hash", codegen.NewHash(codegen.HashConfig{Key: [16]byte{7}, Length: length, Random: rand.Reader})
		},
	}
}

// A thousand callers at once, half of them with one URL: each has a code of its own.
func TestNoCodeIsHandedOutTwice(t *testing.T) {
	for name, use := range likely(codegen.MinLength) {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, use)
			var links [1000]link.Link
			var wg sync.WaitGroup
			for i := range links {
				wg.Go(func() {
					req := to(fmt.Sprintf("http://example.com/%d", i))
					if i%2 == 0 {
						req = to("http://example.com/same")
					}
					var err error
					if links[i], err = b.created(t.Context(), noon(), by(admin()), &req); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			owner := map[link.Key]int{}
			for i, l := range links {
				if first, twice := owner[l.Key]; twice {
					t.Errorf("%s was given to %d and %d", l.Key, first, i)
				}
				owner[l.Key] = i
				if stored, err := b.store.Get(t.Context(), l.Key); err != nil || stored.ID != l.ID || stored.CodeKind != link.Chosen {
					t.Errorf("%s: stored %s of kind %v, %v; want %s", l.Key, stored.ID, stored.CodeKind, err, l.ID)
				}
			}
			if got := b.counter(t, "curt_code_collisions_total"); got != 0 {
				t.Errorf("codes that promise little raised the alarm %v times", got)
			}
		})
	}
}

// The rule of the strategy hash.
func TestHashGivesAURLItsCode(t *testing.T) {
	use := likely(7)["hash"]
	b, twin := newBench(t, use), newBench(t, use)
	first := b.mustCreate(t, admin(), to("http://example.com/a"))
	if got := twin.mustCreate(t, admin(), to(" HTTP://EXAMPLE.com:80/./a ")); got.Key != first.Key {
		t.Errorf("the same URL, spelled otherwise, has %s on another instance of the same key, want %s", got.Key, first.Key)
	}
	second := b.mustCreate(t, admin(), to("http://example.com/a"))
	if second.Key == first.Key || second.ID == first.ID {
		t.Errorf("a second link to the same URL is %s again", second.Key)
	}
	if got := b.mustCreate(t, member("acme", "links:write"), to("http://example.com/a")); got.Key == first.Key || got.Key == second.Key {
		t.Errorf("another workspace has %s", got.Key)
	}

	// A URL that comes again and again costs one insert each time, and never fails.
	var inserts int
	counted := newBench(t, use, func(c *linkservice.Config) { c.Store = countCreates(c.Store, &inserts) })
	for range 100 {
		counted.mustCreate(t, admin(), to("http://example.com/again"))
	}
	if inserts != 100 {
		t.Errorf("100 links to one URL took %d inserts", inserts)
	}
	inserts = 0
	blind := newBench(t, likely(7)["hash that knows nothing"], func(c *linkservice.Config) { c.Store = countCreates(c.Store, &inserts) })
	for range 10 {
		blind.mustCreate(t, admin(), to("http://example.com/again"))
	}
	if inserts != 55 {
		t.Errorf("without the filter 10 links to one URL took %d inserts, want 1 + 2 + ... + 10", inserts)
	}
	alias := to("http://example.com/again")
	alias.Alias = shorten.Value("chosen")
	blind.mustCreate(t, admin(), alias)
	if links, codes := blind.tries(t, "hash"); links != 10 || codes != 55 {
		t.Errorf("the histogram has %d links and %v codes, want 10 and 55: an alias is none", links, codes)
	}
	if links, codes := counted.tries(t, "hash"); links != 100 || codes != 100 {
		t.Errorf("with the filter the histogram has %d links and %v codes, want 100 each", links, codes)
	}
}

// countCreates counts the creates that reach the store, one after the other.
func countCreates(store link.Store, n *int) link.Store {
	return linktest.WithFaults(store, func(op linktest.Op, _ link.Key) (bool, error) {
		if op == linktest.OpCreate {
			*n++
		}
		return true, nil
	})
}

// lookedFor counts the look-ups of destinations before a create.
type lookedFor struct {
	*linktest.Memory
	times int
}

func (l *lookedFor) FindSame(ctx context.Context, wanted link.Link, now time.Time) (link.Link, error) {
	l.times++
	return l.Memory.FindSame(ctx, wanted, now)
}

// A destination whose own code is free by the filter is not looked up before it is created. The create finds
// links whose codes were generated in another way all the same, and a filter that forgot costs no second link.
func TestAFreeCodeSavesTheLookup(t *testing.T) {
	store := &lookedFor{Memory: linktest.NewMemory()}
	over := func(c *linkservice.Config) { c.Store, c.Dedupe = store, true }
	create := func(b bench, url string, found bool, looked int) {
		t.Helper()
		store.times = 0
		if got := b.mustMake(t, admin(), to(url)); got.Found != found || store.times != looked {
			t.Errorf("%s: found %t after %d look-ups, want %t after %d", url, got.Found, store.times, found, looked)
		}
	}
	earlier := newBench(t, likely(7)["random"], over)
	create(earlier, "http://example.com/earlier", false, 1)
	b := newBench(t, likely(7)["hash"], over)
	create(b, "http://example.com/new", false, 0)
	create(b, "http://example.com/new", true, 1)
	create(b, "http://example.com/earlier", true, 0)
	forgot := newBench(t, likely(7)["hash"], over)
	create(forgot, "http://example.com/new", true, 0)
}
