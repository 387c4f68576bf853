package keypool

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"curt/internal/background"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

const (
	// fillEvery is the pause between two looks at the pool: what 10,000 creates a second use meanwhile is a tenth
	// of the default depth.
	fillEvery = time.Second

	// step is how many batches are put between two looks, so that several fillers put little too much.
	step = 10
)

// FillerConfig says what a Filler puts into a pool.
type FillerConfig struct {
	Store Store
	Pool  string // its name

	// Keys generates the keys. Its guarantee must be Unique among all fillers and all other users of what it counts
	// with: so each filler has a part of its own.
	Keys codegen.Generator

	Depth int          // how many keys the pool should have; 0 = 100,000
	Batch int          // keys put at once; 0 = BatchSize
	Log   *slog.Logger // nil = silence
}

// Filler keeps a pool filled. Several may work on one pool.
type Filler struct {
	config FillerConfig
	level  levelWatch

	generated atomic.Uint64
	failures  atomic.Uint64
}

// NewFiller returns a Filler.
func NewFiller(c FillerConfig) *Filler {
	if c.Depth == 0 {
		c.Depth = 100 * BatchSize
	}
	if c.Batch == 0 {
		c.Batch = BatchSize
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Filler{config: c, level: levelWatch{store: c.Store, pool: c.Pool}}
}

// Run keeps the pool filled until ctx ends, and returns nil then.
func (f *Filler) Run(ctx context.Context) error {
	var failing repeatlog.Condition
	for range background.Every(ctx, fillEvery) {
		more, err := true, error(nil)
		for more && err == nil && ctx.Err() == nil {
			more, err = f.Step(ctx)
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			failing.Log(ctx, time.Now(), f.config.Log, slog.LevelWarn, "filling the pool of keys failed, retrying", err)
		default:
			failing.LogRecovery(ctx, time.Now(), f.config.Log, "filling the pool of keys recovered")
		}
	}
	return nil
}

// Step looks how many keys the pool has, and puts some batches while they are too few. more reports that they may still
// be. The error wraps codegen.ErrExhausted when no further key exists. The end of ctx interrupts no put, whose keys would
// be lost.
func (f *Filler) Step(ctx context.Context) (more bool, err error) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	level, err := f.level.read(within)
	for puts := 0; err == nil && level.Unused < uint64(f.config.Depth); puts++ {
		if puts == step || ctx.Err() != nil {
			return true, nil
		}
		var n int
		n, err = f.put(within)
		level.Unused += uint64(n)
	}
	if err != nil {
		f.failures.Add(1)
	}
	return false, err
}

// put generates a batch and puts it, also one that is small because the keys have ended.
func (f *Filler) put(ctx context.Context) (n int, err error) {
	keys := make([]link.Code, 0, f.config.Batch)
	var ended error
	for len(keys) < f.config.Batch && ended == nil {
		var key link.Code
		if key, ended = f.config.Keys.Next(ctx, codegen.Need{}); ended == nil {
			keys = append(keys, key)
		}
	}
	if len(keys) > 0 {
		err = f.config.Store.Put(ctx, f.config.Pool, keys)
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("put keys into %s: %w", f.config.Pool, err)
	case ended != nil:
		err = fmt.Errorf("generate keys for %s: %w", f.config.Pool, ended)
	}
	f.generated.Add(uint64(len(keys)))
	return len(keys), err
}

// Level returns what was read of the pool last; ok is false while nothing was.
func (f *Filler) Level() (Level, bool) { return f.level.last() }

// FillerStats are totals since the Filler was created.
type FillerStats struct {
	Generated uint64 // keys
	Failures  uint64 // steps
}

// Stats returns the totals. Each is exact; together they are not one moment.
func (f *Filler) Stats() FillerStats {
	return FillerStats{Generated: f.generated.Load(), Failures: f.failures.Load()}
}

// levelWatch reads the level of a pool and keeps it for who asks without I/O.
type levelWatch struct {
	store Store
	pool  string

	known atomic.Pointer[Level] // nil = the last reading failed

	// Of the loop that reads:
	began time.Time // the first reading
	past  []sample  // those within RateWindow and the one before, the newest last
}

// sample is what servers had taken into memory at a time, and not used: it may be lost since.
type sample struct {
	at    time.Time
	taken uint64
}

func (w *levelWatch) read(ctx context.Context) (Level, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	l, err := w.store.Level(ctx, w.pool)
	if err != nil {
		w.known.Store(nil)
		return l, fmt.Errorf("read the level of %s: %w", w.pool, err)
	}
	l.Filled = w.filled(time.Now(), &l)
	w.known.Store(&l)
	return l, nil
}

// filled returns by how much the memory of servers has grown within RateWindow: a server that starts takes 10,000 keys,
// which is no use of them. What was before the first reading is taken for empty memory.
func (w *levelWatch) filled(now time.Time, l *Level) uint64 {
	if w.began.IsZero() {
		w.began = now
	}
	w.past = append(w.past, sample{now, l.Held + l.Leaked})
	for len(w.past) > 1 && now.Sub(w.past[1].at) > RateWindow { // one of before is what the window began with
		w.past = w.past[1:]
	}
	least := l.Held + l.Leaked
	for _, s := range w.past {
		least = min(least, s.taken)
	}
	if now.Sub(w.began) <= RateWindow {
		least = min(least, l.Leaked)
	}
	return l.Held + l.Leaked - least
}

func (w *levelWatch) last() (Level, bool) {
	if l := w.known.Load(); l != nil {
		return *l, true
	}
	return Level{}, false
}
