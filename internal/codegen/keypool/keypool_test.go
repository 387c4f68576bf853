package keypool_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/codegen"
	"curt/internal/codegen/codegentest"
	"curt/internal/codegen/keypool"
	"curt/internal/codegen/keypool/keypooltest"
	"curt/internal/link"
)

func TestModelKeepsTheContract(t *testing.T) {
	keypooltest.Run(t, func(*testing.T) keypool.Store { return keypooltest.NewMemory() },
		func(_ *testing.T, s keypool.Store) keypool.Store { return s })
}

func TestPool(t *testing.T) {
	keypooltest.RunPool(t,
		func(*testing.T) keypooltest.Stores {
			return keypooltest.Stores{Keys: keypooltest.NewMemory(), Leases: codegentest.NewLeaser()}
		},
		func(_ *testing.T, s keypooltest.Stores) keypooltest.Stores { return s })
}

func permutation() *codegen.Permutation { return codegen.NewPermutation([32]byte{1, 2, 3}) }

// demand fills the pool when somebody finds it empty, so that errors of the filler's leases reach Next.
type demand struct {
	keypool.Store

	filler *keypool.Filler
}

func (d demand) Take(ctx context.Context, pool, holder string) (keypool.Batch, error) {
	b, err := d.Store.Take(ctx, pool, holder)
	if errors.Is(err, keypool.ErrEmpty) {
		if _, err := d.filler.Step(ctx); err != nil && !errors.Is(err, codegen.ErrExhausted) {
			return b, err
		}
		b, err = d.Store.Take(ctx, pool, holder)
	}
	return b, err
}

// onDemand returns a pool whose batches are the ranges of a leaser.
func onDemand(l codegen.Leaser, length int, size uint64) *keypool.Pool {
	ranges := codegen.NewRange(codegen.RangeConfig{Leaser: l, Permutation: permutation(), Length: length, Size: size})
	counter := codegen.Counter(codegen.DefaultPrefix, length)
	store := demand{Store: keypooltest.NewMemory()}
	store.filler = keypool.NewFiller(keypool.FillerConfig{Store: store.Store, Pool: counter, Keys: ranges, Depth: int(size), Batch: int(size)})
	return keypool.New(keypool.Config{
		Store: store, Pool: counter, Holder: "a", Kind: link.Counted, Held: int(size),
		Exhausted: func(ctx context.Context) (bool, error) {
			mark, err := l.Leased(ctx, counter)
			return mark >= codegen.Space(length), err
		},
	})
}

func TestPoolKeepsTheContract(t *testing.T) {
	codegentest.RunGenerator(t, func(l codegen.Leaser, length int, size uint64) codegen.Generator {
		return onDemand(l, length, size)
	})
}

func TestPoolKeepsTheContractWhileRunning(t *testing.T) {
	codegentest.RunGenerator(t, func(l codegen.Leaser, length int, size uint64) codegen.Generator {
		p := onDemand(l, length, size)
		run(t, p.Run)
		return p
	})
}

// run keeps a loop going until the test ends, and waits for its end.
func run(t *testing.T, loop func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var done sync.WaitGroup
	done.Go(func() {
		if err := loop(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); done.Wait() }) }
	t.Cleanup(stop)
	return stop
}

func next(t *testing.T, g codegen.Generator) link.Code {
	t.Helper()
	code, err := g.Next(t.Context(), codegen.Need{})
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	return code
}

const name = "codes-7"

// filled returns a store with so many keys in it, and a filler for more.
func filled(t *testing.T, depth int) (*keypooltest.Memory, *keypool.Filler) {
	t.Helper()
	s := keypooltest.NewMemory()
	f := keypool.NewFiller(keypool.FillerConfig{
		Store: s, Pool: name, Depth: depth,
		Keys: codegen.NewRange(codegen.RangeConfig{Leaser: codegentest.NewLeaser(), Permutation: permutation(), Length: 7}),
	})
	for more := true; more; {
		var err error
		if more, err = f.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s, f
}

func level(t *testing.T, s keypool.Store) keypool.Level {
	t.Helper()
	l, err := s.Level(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestCreatesNeverWait: 1,000 creates a second for a minute from a store whose every answer takes 200 ms, ten seconds of it
// without a filler, and two without the store.
func TestCreatesNeverWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, f := filled(t, 30_000)
		var down atomic.Bool
		slow := keypooltest.WithFaults(memory, func(context.Context, string) (bool, error) {
			time.Sleep(200 * time.Millisecond) // of the bubble's clock
			if down.Load() {
				return false, errors.New("connection refused")
			}
			return false, nil
		})
		p := keypool.New(keypool.Config{Store: slow, Pool: name, Holder: "a", Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
		stopFilling := run(t, f.Run)
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		stop := run(t, p.Run)
		seen := map[link.Code]bool{}
		for ms := range 60_000 {
			switch ms {
			case 20_000:
				stopFilling()
			case 30_000:
				stopFilling = run(t, f.Run)
			case 40_000:
				down.Store(true)
			case 42_000:
				down.Store(false)
			}
			began := time.Now()
			seen[next(t, p)] = true
			if waited := time.Since(began); waited != 0 {
				t.Fatalf("create %d waited %v", ms, waited)
			}
			time.Sleep(time.Millisecond)
		}
		if s := p.Stats(); s.Inline != 0 || s.Empty != 0 || len(seen) != 60_000 {
			t.Errorf("%d codes of 60,000: %+v", len(seen), s)
		}
		if l, ok := p.Level(); !ok || l.Taken < 55_000 || l.Taken > 70_000 {
			t.Errorf("level %+v, %v; want the rate of 60,000 a minute", l, ok)
		} else if runway, ok := l.Runway(); !ok || runway < 20*time.Second || runway > 35*time.Second {
			t.Errorf("%d keys last %v, %v; want about 30 s", l.Unused, runway, ok)
		}
		stopFilling()
		stop()
	})
}

// TestAKillIsCounted: a server that is killed has lost what it held; one that stops puts it back.
func TestAKillIsCounted(t *testing.T) {
	s, _ := filled(t, 40_000)
	killed := keypool.New(keypool.Config{Store: s, Pool: name, Holder: "a"})
	if err := killed.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	next(t, killed)
	if got, want := level(t, s), (keypool.Level{Unused: 30_000, Held: 10_000, Taken: 10_000}); got != want {
		t.Errorf("level %+v, want %+v", got, want)
	}
	again := keypool.New(keypool.Config{Store: s, Pool: name, Holder: "a"})
	if err := again.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := level(t, s), (keypool.Level{Unused: 20_000, Held: 10_000, Leaked: 10_000, Taken: 20_000}); got != want {
		t.Errorf("level %+v, want %+v", got, want)
	}
	code := next(t, again)
	run(t, again.Run)()
	if got, want := level(t, s), (keypool.Level{Unused: 29_999, Leaked: 10_000, Taken: 10_001}); got != want {
		t.Errorf("level after a stop %+v, want %+v", got, want)
	}
	if _, err := again.Next(t.Context(), codegen.Need{}); !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("Next after the stop: %v", err)
	}
	last := keypool.New(keypool.Config{Store: s, Pool: name, Holder: "b"})
	for range 29_999 {
		if next(t, last) == code {
			t.Fatal("a used key was put back")
		}
	}
}

// TestABurnedCodeDropsItsBatch also where the batch is not the newest, and counts it.
func TestABurnedCodeDropsItsBatch(t *testing.T) {
	s, _ := filled(t, 10_000)
	p := keypool.New(keypool.Config{Store: s, Pool: name, Holder: "a"})
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := next(t, p)
	second := next(t, p)
	p.Burned(first)
	p.Burned(second) // of the same batch, which is gone
	p.Burned("a-word")
	if st := p.Stats(); st.Burned != 3 || st.Keys != 9_000 {
		t.Errorf("%+v, want 3 burned and 9,000 keys", st)
	}
	run(t, p.Run)()
	if got, want := level(t, s), (keypool.Level{Unused: 9_000, Leaked: 998, Taken: 1_000}); got != want {
		t.Errorf("level %+v, want %+v", got, want)
	}
}

// TestALostAnswerLosesKeysOnly: the store moved a batch, or released one, and could not say so.
func TestALostAnswerLosesKeysOnly(t *testing.T) {
	s, _ := filled(t, 40_000)
	calls := 0
	lossy := keypooltest.WithFaults(s, func(_ context.Context, op string) (bool, error) {
		if calls++; (op == "take" || op == "release") && calls%3 == 0 {
			return true, errors.New("connection lost after the commit")
		}
		return false, nil
	})
	p := keypool.New(keypool.Config{Store: lossy, Pool: name, Holder: "a", Held: 3000})
	seen := map[link.Code]bool{}
	for len(seen) < 15_000 {
		code, err := p.Next(t.Context(), codegen.Need{})
		if err != nil {
			continue
		}
		if seen[code] {
			t.Fatalf("code %q was handed out twice", code)
		}
		seen[code] = true
	}
	stop := run(t, p.Run)
	stop()
	leaked, err := s.Abandon(t.Context(), "a")
	if l := level(t, s); err != nil || leaked == 0 || l.Held != 0 || l.Unused+l.Leaked+uint64(len(seen)) < 40_000 {
		t.Errorf("leaked %d, %v, level %+v with %d used", leaked, err, l, len(seen))
	}
}

// TestARestoredPoolHasNoKeys: what was taken after a backup is in it as unused. Restoring drops that, and skips ids.
func TestARestoredPoolHasNoKeys(t *testing.T) {
	memory, leases := keypooltest.NewMemory(), codegentest.NewLeaser()
	seen := map[link.Code]bool{}
	use := func(s keypool.Store, n int) {
		t.Helper()
		ranges := codegen.NewRange(codegen.RangeConfig{Leaser: leases, Permutation: permutation(), Length: 7})
		f := keypool.NewFiller(keypool.FillerConfig{Store: s, Pool: name, Keys: ranges, Depth: 5000})
		p := keypool.New(keypool.Config{Store: s, Pool: name, Holder: "a"})
		for range n {
			code, err := p.Next(t.Context(), codegen.Need{})
			if errors.Is(err, keypool.ErrEmpty) {
				if _, err = f.Step(t.Context()); err == nil {
					code, err = p.Next(t.Context(), codegen.Need{})
				}
			}
			if err != nil || seen[code] {
				t.Fatalf("code %q, %v; handed out before: %v", code, err, seen[code])
			}
			seen[code] = true
		}
	}
	use(memory, 1500)
	backup := memory.Clone()
	use(memory, 3000)
	backup.DropUnused()
	if err := codegen.SkipAfterRestore(t.Context(), leases, codegen.DefaultPrefix, 7, 0); err != nil {
		t.Fatal(err)
	}
	use(backup, 3000)
}

// TestFillersShareAPool: several keep it at its depth, and put little too much.
func TestFillersShareAPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, leases := keypooltest.NewMemory(), codegentest.NewLeaser()
		var stops []func()
		for range 4 {
			ranges := codegen.NewRange(codegen.RangeConfig{Leaser: leases, Permutation: permutation(), Length: 7})
			stops = append(stops, run(t, keypool.NewFiller(keypool.FillerConfig{Store: s, Pool: name, Keys: ranges}).Run))
		}
		time.Sleep(10 * time.Second)
		if l := level(t, s); l.Unused < 100_000 || l.Unused > 140_000 {
			t.Errorf("level %+v", l)
		}
		for range 60 {
			if _, err := s.Take(t.Context(), name, "a"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		if l := level(t, s); l.Unused < 100_000 || l.Unused > 140_000 {
			t.Errorf("level after 60,000 were taken %+v", l)
		}
		for _, stop := range stops {
			stop()
		}
	})
}

func TestAFillerRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		var down atomic.Bool
		down.Store(true)
		memory := keypooltest.NewMemory()
		s := keypooltest.WithFaults(memory, func(_ context.Context, op string) (bool, error) {
			if down.Load() && op == "put" {
				return false, errors.New("connection refused")
			}
			return false, nil
		})
		f := keypool.NewFiller(keypool.FillerConfig{
			Store: s, Pool: name, Log: slog.New(slog.NewTextHandler(&out, nil)),
			Keys: codegen.NewRange(codegen.RangeConfig{Leaser: codegentest.NewLeaser(), Permutation: permutation(), Length: 7}),
		})
		stop := run(t, f.Run)
		time.Sleep(5500 * time.Millisecond)
		if st := f.Stats(); st.Failures != 6 || st.Generated != 0 {
			t.Errorf("%+v after five seconds without the store", st)
		}
		down.Store(false)
		time.Sleep(time.Second)
		if l, ok := f.Level(); !ok || level(t, memory).Unused != 100_000 {
			t.Errorf("level %+v, %v", l, ok)
		}
		time.Sleep(2 * time.Minute) // until it is certain
		stop()
		if text := out.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "recovered") {
			t.Errorf("log: %s", text)
		}
	})
}

func TestRunway(t *testing.T) {
	for _, c := range []struct {
		level keypool.Level
		want  time.Duration
		ok    bool
	}{
		{keypool.Level{}, 0, true},
		{keypool.Level{Taken: 5}, 0, true},
		{keypool.Level{Unused: 5}, 0, false},
		{keypool.Level{Unused: 100_000, Taken: 60_000}, 100 * time.Second, true},
		{keypool.Level{Unused: 100_000, Taken: 70_000, Filled: 10_000}, 100 * time.Second, true},
		{keypool.Level{Unused: 100_000, Taken: 10_000, Filled: 10_000}, 0, false},
	} {
		if got, ok := c.level.Runway(); got != c.want || ok != c.ok {
			t.Errorf("%+v: %v, %v", c.level, got, ok)
		}
	}
}

// TestAStartIsNoUse: what servers take to fill their memory when they start is not counted as used, whether the ones of before stopped or
// were killed, while the creates of others are.
func TestAStartIsNoUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := filled(t, 100_000)
		defer run(t, f.Run)()
		start := func(holder string) (p *keypool.Pool, stop func()) {
			t.Helper()
			p = keypool.New(keypool.Config{Store: s, Pool: name, Holder: holder})
			if err := p.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			next(t, p)
			return p, run(t, p.Run)
		}
		idle := func(what string, p *keypool.Pool) {
			t.Helper()
			for range 80 {
				time.Sleep(time.Second)
				for who, level := range map[string]func() (keypool.Level, bool){"server": p.Level, "filler": f.Level} {
					if l, ok := level(); !ok {
						t.Fatalf("%s: the %s does not know the level", what, who)
					} else if runway, ok := l.Runway(); ok && runway < 10*time.Minute {
						t.Fatalf("%s: %+v lasts %s by the %s", what, l, runway, who)
					}
				}
			}
		}
		p, stop := start("a")
		idle("the first start", p)
		stop()
		time.Sleep(2 * time.Second) // until the filler has read that nobody holds keys; a faster restart counts as use
		p, stop = start("a")
		idle("the next start", p)
		q := keypool.New(keypool.Config{Store: s, Pool: name, Holder: "b"})
		if err := q.Start(t.Context()); err != nil { // and is killed
			t.Fatal(err)
		}
		idle("another one", p)
		q, stopOther := start("b")
		idle("another one after a kill", p)
		for range 60_000 {
			next(t, p)
			time.Sleep(time.Millisecond)
		}
		if l, _ := q.Level(); l.Taken < l.Filled+50_000 {
			t.Errorf("60,000 creates at another server: %+v", l)
		}
		stop()
		stopOther()
	})
}

func TestADamagedBatchIsFound(t *testing.T) {
	keys := []link.Code{"abcdefg", "ABCDEFG", "0000000"}
	text, err := keypool.Encode(keys)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := keypool.Decode(text); err != nil || !slices.Equal(got, keys) {
		t.Errorf("%v, %v", got, err)
	}
	for i := range len(text) {
		wrong := []byte(text)
		wrong[i] ^= 1
		if got, err := keypool.Decode(string(wrong)); !errors.Is(err, link.ErrUnavailable) {
			t.Errorf("byte %d: %v, %v", i, got, err)
		}
	}
	for _, wrong := range []string{"", " ", "x", text[:len(text)-1], text[8:]} {
		if got, err := keypool.Decode(wrong); err == nil {
			t.Errorf("%q: %v", wrong, got)
		}
	}
}
