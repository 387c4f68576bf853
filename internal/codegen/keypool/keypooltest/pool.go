package keypooltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/internal/codegen"
	"curt/internal/codegen/keypool"
	"curt/internal/link"
)

// Stores are what a driver has of a pool.
type Stores struct {
	Keys   keypool.Store
	Leases codegen.Leaser
}

// RunPool proves Pool and Filler over a driver. open returns stores without pools; again returns other handles on the
// data of s, as a second process or the next start would have them, while s stays usable.
func RunPool(t *testing.T, open func(t *testing.T) Stores, again func(t *testing.T, s Stores) Stores) {
	for name, maker := range map[string]func(codegen.Leaser) codegen.Generator{"range": ranges, "snowflake": snowflakes} {
		t.Run("no code repeats over kills of servers and fillers/"+name, func(t *testing.T) { kills(t, open(t), again, maker) })
		t.Run("two servers and two fillers at once/"+name, func(t *testing.T) { s := open(t); together(t, maker, s, again(t, s)) })
	}
	t.Run("a space is used to its end", func(t *testing.T) { exhausts(t, open(t)) })
	t.Run("a pool without a filler is unavailable", func(t *testing.T) { unfilled(t, open(t)) })
}

func permutation() *codegen.Permutation { return codegen.NewPermutation([32]byte{7, 5}) }

func ranges(l codegen.Leaser) codegen.Generator {
	return codegen.NewRange(codegen.RangeConfig{Leaser: l, Permutation: permutation(), Length: 7})
}

func snowflakes(l codegen.Leaser) codegen.Generator {
	return codegen.NewSnowflake(codegen.SnowflakeConfig{Leases: l, Permutation: permutation(), Now: time.Now})
}

// filled runs a filler with some batches of a hundred keys ahead until the test ends or stop is called.
func filled(t *testing.T, s Stores, maker func(codegen.Leaser) codegen.Generator) (stop func()) {
	t.Helper()
	f := keypool.NewFiller(keypool.FillerConfig{Store: s.Keys, Pool: pool, Keys: maker(s.Leases), Depth: 1500, Batch: 100})
	if _, err := f.Step(t.Context()); err != nil {
		t.Fatalf("Step: %v", err)
	}
	return running(t, f.Run)
}

// running runs a loop until the test ends or stop is called.
func running(t *testing.T, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var done sync.WaitGroup
	done.Go(func() {
		if err := run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); done.Wait() }) }
	t.Cleanup(stop)
	return stop
}

func server(s Stores, holder string) *keypool.Pool {
	return keypool.New(keypool.Config{Store: s.Keys, Pool: pool, Holder: holder, Held: 2000})
}

// next is Next, and waits for a filler.
func next(t *testing.T, g codegen.Generator) link.Code {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(time.Millisecond) {
		code, err := g.Next(t.Context(), codegen.Need{})
		if err == nil {
			return code
		}
		if !errors.Is(err, keypool.ErrEmpty) || time.Now().After(deadline) {
			t.Fatalf("Next: %v", err)
		}
	}
}

// kills ends a server and a filler in the midst of their work, again and again, every third time in an orderly way.
func kills(t *testing.T, s Stores, again func(t *testing.T, s Stores) Stores, maker func(codegen.Leaser) codegen.Generator) {
	const rounds, each = 12, 150
	seen, lost := map[link.Code]bool{}, 0
	for round := range rounds {
		if round%4 == 3 {
			s = again(t, s)
		}
		// A filler that was killed between two keys has left a part of what it leased.
		stopFilling := filled(t, s, maker)
		p := server(s, "killed")
		if err := p.Start(t.Context()); err != nil && !errors.Is(err, keypool.ErrEmpty) {
			t.Fatalf("Start: %v", err)
		}
		stop := func() { lost += p.Stats().Keys } // a kill: nobody runs it any more
		if round%3 == 2 {
			stop = running(t, p.Run)
		}
		for range each {
			code := next(t, p)
			if seen[code] || !link.ValidCode(code) {
				t.Fatalf("round %d: code %q was handed out twice, or is invalid", round, code)
			}
			seen[code] = true
		}
		stop()
		stopFilling()
	}
	if _, err := s.Keys.Abandon(t.Context(), "killed"); err != nil {
		t.Fatal(err)
	}
	l, err := s.Keys.Level(t.Context(), pool)
	// Of each kill, the batch at hand, and those whose release nobody had time for, count as a whole.
	if err != nil || l.Held != 0 || l.Leaked < uint64(lost) || l.Leaked > uint64(lost+rounds*(each+100)) {
		t.Errorf("level %+v, %v; %d keys were lost", l, err, lost)
	}
}

// together has two servers and two fillers work at once, in different processes.
func together(t *testing.T, maker func(codegen.Leaser) codegen.Generator, processes ...Stores) {
	const each = 2000
	var (
		mu   sync.Mutex
		seen = map[link.Code]bool{}
		wg   sync.WaitGroup
	)
	var stops []func()
	for i, s := range processes {
		stops = append(stops, filled(t, s, maker))
		p := server(s, fmt.Sprint("server", i))
		stops = append(stops, running(t, p.Run))
		for range 4 {
			wg.Go(func() {
				mine := make([]link.Code, 0, each/4)
				for len(mine) < each/4 && !t.Failed() {
					code, err := p.Next(t.Context(), codegen.Need{})
					switch {
					case err == nil:
						mine = append(mine, code)
					case errors.Is(err, keypool.ErrEmpty):
						time.Sleep(time.Millisecond) // for a filler
					default:
						t.Errorf("Next: %v", err)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				for _, code := range mine {
					if seen[code] {
						t.Errorf("code %q was handed out twice", code)
					}
					seen[code] = true
				}
			})
		}
	}
	wg.Wait()
	for _, stop := range stops {
		stop()
	}
	l, err := processes[0].Keys.Level(t.Context(), pool)
	if err != nil || l.Held != 0 || l.Leaked != 0 {
		t.Errorf("after an orderly stop the level is %+v, %v", l, err)
	}
	if want := each * len(processes); len(seen) != want && !t.Failed() {
		t.Errorf("%d different codes, want %d", len(seen), want)
	}
}

// exhausts uses the last 1,234 codes of a space.
func exhausts(t *testing.T, s Stores) {
	const left = 1234
	counter := codegen.Counter(codegen.DefaultPrefix, 4)
	mark, err := s.Leases.Leased(t.Context(), counter)
	if err == nil {
		err = s.Leases.Skip(t.Context(), counter, codegen.Space(4)-left-mark)
	}
	if err != nil {
		t.Fatal(err)
	}
	maker := codegen.NewRange(codegen.RangeConfig{Leaser: s.Leases, Permutation: permutation(), Length: 4})
	f := keypool.NewFiller(keypool.FillerConfig{Store: s.Keys, Pool: counter, Keys: maker})
	if more, err := f.Step(t.Context()); more || !errors.Is(err, codegen.ErrExhausted) {
		t.Errorf("Step at the end of the space: %v, %v; want ErrExhausted", more, err)
	}
	p := keypool.New(keypool.Config{Store: s.Keys, Pool: counter, Holder: "a", Exhausted: func(ctx context.Context) (bool, error) {
		mark, err := s.Leases.Leased(ctx, counter)
		return mark >= codegen.Space(4), err
	}})
	seen := map[link.Code]bool{}
	for range left {
		seen[next(t, p)] = true
	}
	if len(seen) != left {
		t.Errorf("the last %d ids made %d codes", left, len(seen))
	}
	for range 3 {
		if code, err := p.Next(t.Context(), codegen.Need{}); !errors.Is(err, codegen.ErrExhausted) || errors.Is(err, link.ErrUnavailable) {
			t.Errorf("Next in a used space: %q, %v; want ErrExhausted", code, err)
		}
	}
}

func unfilled(t *testing.T, s Stores) {
	p := server(s, "a")
	if err := p.Start(t.Context()); !errors.Is(err, keypool.ErrEmpty) {
		t.Errorf("Start: %v; want ErrEmpty", err)
	}
	code, err := p.Next(t.Context(), codegen.Need{})
	if !errors.Is(err, link.ErrUnavailable) || !errors.Is(err, keypool.ErrEmpty) || !strings.Contains(fmt.Sprint(err), "role keys") {
		t.Errorf("Next of an empty pool: %q, %v", code, err)
	}
	filled(t, s, ranges)
	next(t, p)
}
