package codes

import (
	"context"
	"crypto/rand"
	"math"
	"sync"
	"time"

	"curt/internal/codegen"
	"curt/internal/codegen/keypool"
	"curt/internal/link"
)

// installation is what the strategies are compared for.
type installation struct {
	existing uint64 // links
	length   int    // CURT_CODE_LENGTH
	plain    bool   // CURT_SNOWFLAKE=plain
	inUse    string // CURT_CODES
	poolKeys string // CURT_POOL_KEYS
	sample   int    // codes that are generated of each strategy, at least
}

// strategy is a value of CURT_CODES.
type strategy struct {
	name  string
	open  func(in installation, issued codegen.Issued) codegen.Generator
	space func(in installation) float64              // how many codes it chooses from, while few are taken
	first func(in installation, code link.Code) bool // one of these, and not longer
	fixed bool                                       // it makes no longer codes when these are taken
	grows bool                                       // from CURT_CODE_LENGTH to longer codes
	held  int                                        // codes in the memory of each server, whatever the number of links
}

// ends reports whether no code is left for a new link.
func (s *strategy) ends(in installation) bool { return s.fixed && float64(in.existing) >= s.space(in) }

// strategies are all that are compared for an installation, with keys that no installation has: codes of the right kind that give
// nothing away.
func strategies(in installation) []strategy {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails: crypto/rand ends the process instead
	perm, ofLength := codegen.NewPermutation(key), func(in installation) float64 { return float64(codegen.Space(in.length)) }
	hasLength := func(in installation, code link.Code) bool { return len(code) == in.length }
	ranged := func(in installation, _ codegen.Issued) codegen.Generator {
		return codegen.NewRange(codegen.RangeConfig{Leaser: &counters{}, Permutation: perm, Length: in.length})
	}
	timed := func(in installation, _ codegen.Issued) codegen.Generator {
		c := codegen.SnowflakeConfig{Leases: &counters{}, Permutation: perm, Now: time.Now}
		if in.plain {
			c.Permutation = nil
		}
		return codegen.NewSnowflake(c)
	}
	space63, any := func(installation) float64 { return math.Exp2(63) }, func(installation, link.Code) bool { return true }
	all := []strategy{
		{name: "range", open: ranged, space: ofLength, first: hasLength, fixed: true},
		{name: "random", open: func(in installation, i codegen.Issued) codegen.Generator {
			return codegen.NewRandom(rand.Reader, in.length).Avoid(i)
		}, space: ofLength, first: hasLength, grows: true},
		{name: "hash", open: func(in installation, i codegen.Issued) codegen.Generator {
			return codegen.NewHash(codegen.HashConfig{Key: [16]byte(key[:]), Length: in.length, Issued: i, Random: rand.Reader})
		}, space: ofLength, first: hasLength, grows: true},
		{name: "words", open: func(_ installation, i codegen.Issued) codegen.Generator {
			return codegen.NewWords(rand.Reader).Avoid(i)
		}, space: func(installation) float64 { return float64(codegen.NewWords(rand.Reader).Space()) }, first: func(_ installation, code link.Code) bool {
			return len(code) > 2 && code[len(code)-3] == '-'
		}},
		{name: "snowflake", open: timed, space: space63, first: any},
	}
	keys := all[0] // pool has the codes of another strategy, generated ahead
	if in.poolKeys == "snowflake" {
		keys = all[len(all)-1]
	}
	pool := keys
	pool.name, pool.held = "pool", poolHeld
	pool.open = func(in installation, i codegen.Issued) codegen.Generator {
		g := keys.open(in, i)
		return keypool.New(keypool.Config{Store: &fullPool{keys: g}, Pool: "compare", Holder: "compare", Kind: g.Kind(), Held: poolHeld})
	}
	return append(all, pool)
}

// poolHeld are the keys of CURT_CODES=pool in the memory of each server.
const poolHeld = 10 * keypool.BatchSize

// fullPool is a pool of keys that never gets empty: each batch is generated when it is taken, so that what a key costs
// includes its generation, without the link store.
type fullPool struct {
	keypool.Store // the methods that a Pool calls only while it runs

	keys codegen.Generator
}

// Take implements keypool.Store.
func (p *fullPool) Take(ctx context.Context, _, holder string) (keypool.Batch, error) {
	b := keypool.Batch{Holder: holder, Keys: make([]link.Code, keypool.BatchSize)}
	for i := range b.Keys {
		code, err := p.keys.Next(ctx, codegen.Need{})
		if err != nil {
			return keypool.Batch{}, err
		}
		b.Keys[i] = code
	}
	return b, nil
}

// counters are leases in memory: what a strategy costs in this process.
type counters struct {
	mu    sync.Mutex
	marks map[string]uint64 // guarded by mu
}

// Lease implements codegen.Leaser.
func (c *counters) Lease(_ context.Context, counter string, n uint64) (first uint64, err error) {
	c.move(counter, func(mark uint64) uint64 { first = mark; return mark + n })
	return first, nil
}

// Leased implements codegen.Leaser.
func (c *counters) Leased(_ context.Context, counter string) (mark uint64, err error) {
	c.move(counter, func(at uint64) uint64 { mark = at; return at })
	return mark, nil
}

// Skip implements codegen.Leaser.
func (c *counters) Skip(_ context.Context, counter string, n uint64) error {
	c.move(counter, func(mark uint64) uint64 { return mark + n })
	return nil
}

// Raise implements codegen.Leaser, for one process.
func (c *counters) Raise(_ context.Context, counter string, _, to uint64) error {
	c.move(counter, func(uint64) uint64 { return to })
	return nil
}

func (c *counters) move(counter string, to func(uint64) uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.marks == nil {
		c.marks = map[string]uint64{}
	}
	c.marks[counter] = to(c.marks[counter])
}
