package codegen_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/big"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/codegen"
	"curt/internal/codegen/codegentest"
	"curt/internal/link"
)

func TestSnowflake(t *testing.T) {
	codegentest.RunSnowflake(t,
		func(*testing.T) codegen.Leaser { return codegentest.NewLeaser() },
		func(_ *testing.T, l codegen.Leaser) codegen.Leaser { return l })
}

// TestTheArticlesID: the article prints bW3eKp2D for this id, which its own encoder does not
// return for any alphabet; with letters before digits it is HozUzki6u.
func TestTheArticlesID(t *testing.T) {
	const ours = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	const articles = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	code := string(codegen.EncodeSnowflake(nil, 7255988608614400))
	if code != "00XEPkPA8wK" {
		t.Errorf("code %q", code)
	}
	got := strings.Map(func(r rune) rune { return rune(articles[strings.IndexRune(ours, r)]) }, strings.TrimLeft(code, "0"))
	if got != "HozUzki6u" {
		t.Errorf("in the article's alphabet %q", got)
	}
}

// TestSnowflakeCodesNeverMove: a change would have codes generated twice.
func TestSnowflakeCodesNeverMove(t *testing.T) {
	perm := codegen.NewPermutation(testKey)
	for id, want := range map[uint64][2]link.Code{
		0:           {"00000000000", "0Uk1uHozz8w"},
		1:           {"00000000001", "Anby2KrYtzI"},
		1 << 22:     {"0000000Hb84", "2V4DSoeA607"},
		1<<63 - 1:   {"AzL8n0Y58m7", "9kVfFlht3X5"},
		0x123456789: {"000005KiAfp", "6hhvdKoZxYy"},
	} {
		if got := [2]link.Code{codegen.EncodeSnowflake(nil, id), codegen.EncodeSnowflake(perm, id)}; got != want {
			t.Errorf("%d: %q, want %q", id, got, want)
		}
	}
}

// TestSnowflakePermutes: the permutation of 63 bits stays within them and has an inverse.
func TestSnowflakePermutes(t *testing.T) {
	perm := codegen.NewPermutation(testKey)
	const size = 1 << 63
	changed := 0
	for i := range uint64(20_000) {
		id := i * 461_168_601_842_739 // all over 63 bits
		v := perm.ApplyIn(size, id)
		if v >= size || perm.InvertIn(size, v) != id {
			t.Fatalf("%d goes to %d, and back to %d", id, v, perm.InvertIn(size, v))
		}
		changed += int(v>>62) + int(v&1)
	}
	if changed < 19_000 || changed > 21_000 {
		t.Errorf("the highest and the lowest bit are set %d times in 40,000", changed)
	}
}

// fields decodes a plain code.
func fields(t *testing.T, code link.Code) (at, machine, sequence int64) {
	t.Helper()
	digits := strings.Map(func(r rune) rune { // of math/big: lower case first
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return r
	}, string(code))
	n, ok := new(big.Int).SetString(digits, 62)
	if !ok || !n.IsUint64() || len(code) != codegen.SnowflakeLength {
		t.Fatalf("code %q", code)
	}
	id := n.Int64()
	return id >> 22, id >> 12 & 1023, id & 4095
}

// since2026 is how much later than the clock of a bubble 2026 begins.
const since2026 = 820_540_800 * time.Second // 2000-01-01 to 2026-01-01

func clockAt(d time.Duration) *codegentest.Clock {
	c := new(codegentest.Clock)
	c.Shift(since2026 + d)
	return c
}

// TestSnowflakeCountsMilliseconds: the clock of the bubble stands still while codes are generated.
func TestSnowflakeCountsMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := codegen.NewSnowflake(codegen.SnowflakeConfig{Leases: codegentest.NewLeaser(), Now: clockAt(time.Second).Now})
		began := time.Now()
		for i := range int64(3 * 4096) {
			at, machine, sequence := fields(t, next(t, g))
			if at != 1000+i/4096 || sequence != i%4096 || int(machine) != g.Stats().Machine {
				t.Fatalf("id %d: millisecond %d, machine %d, sequence %d", i, at, machine, sequence)
			}
		}
		if took := time.Since(began); took != 2*time.Millisecond || g.Stats().Waits != 2 {
			t.Errorf("3 * 4,096 codes took %v and waited %d times", took, g.Stats().Waits)
		}
	})
}

func TestSnowflakeWaitsForASmallStepBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := clockAt(time.Hour)
		g := codegen.NewSnowflake(codegen.SnowflakeConfig{Leases: codegentest.NewLeaser(), Now: clock.Now})
		first, _, _ := fields(t, next(t, g))
		clock.Shift(-10 * time.Millisecond)
		began := time.Now()
		at, _, sequence := fields(t, next(t, g))
		if waited := time.Since(began); waited != 10*time.Millisecond || at != first || sequence != 1 {
			t.Errorf("waited %v for millisecond %d after %d, sequence %d", waited, at, first, sequence)
		}
		clock.Shift(-10 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := g.Next(ctx, codegen.Need{}); !errors.Is(err, link.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller that cannot wait: %v", err)
		}
	})
}

// TestSnowflakeNeverIssuesBeforeItsLease: the clock steps back right after a machine id was leased from now on.
func TestSnowflakeNeverIssuesBeforeItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, clock := codegentest.NewLeaser(), clockAt(time.Hour)
		for m := range 1024 {
			if err := l.Skip(t.Context(), codegen.MachineCounter(m), uint64(time.Hour.Milliseconds())); err != nil {
				t.Fatal(err)
			}
		}
		g := codegen.NewSnowflake(codegen.SnowflakeConfig{Leases: codegentest.WithFaults(l, func(_ context.Context, op codegentest.Op) (bool, error) {
			if op == codegentest.OpRaise {
				clock.Shift(-time.Millisecond)
			}
			return false, nil
		}), Now: clock.Now})
		if at, _, sequence := fields(t, next(t, g)); at != time.Hour.Milliseconds() || sequence != 0 {
			t.Errorf("millisecond %d, sequence %d", at, sequence)
		}
	})
}

// TestSnowflakeRefusesALargeStepBack: with one line, until Run has another machine id.
func TestSnowflakeRefusesALargeStepBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		clock := clockAt(time.Hour)
		g := codegen.NewSnowflake(codegen.SnowflakeConfig{
			Leases: codegentest.NewLeaser(), Now: clock.Now, Log: slog.New(slog.NewTextHandler(&out, nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		_, first, _ := fields(t, next(t, g))
		clock.Shift(-11 * time.Millisecond)
		for range 100 {
			if _, err := g.Next(t.Context(), codegen.Need{}); !errors.Is(err, link.ErrUnavailable) {
				t.Fatalf("Next with a clock that went backwards: %v", err)
			}
		}
		if lines := strings.Count(out.String(), "\n"); lines != 1 || !strings.Contains(out.String(), "clock went backwards") || g.Stats().Refusals != 100 {
			t.Errorf("%d lines for %d refusals: %s", lines, g.Stats().Refusals, out.String())
		}
		var wg sync.WaitGroup
		wg.Go(func() { _ = g.Run(ctx) })
		synctest.Wait()
		if at, machine, _ := fields(t, next(t, g)); machine == first || at != time.Hour.Milliseconds()-11 {
			t.Errorf("millisecond %d of machine %d, which was %d", at, machine, first)
		}
		cancel()
		wg.Wait()
	})
}

func TestSnowflakeRefusesTheTimeBefore2026(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := codegen.NewSnowflake(codegen.SnowflakeConfig{Leases: codegentest.NewLeaser(), Now: clockAt(-time.Second).Now})
		if _, err := g.Next(t.Context(), codegen.Need{}); !errors.Is(err, link.ErrUnavailable) || !strings.Contains(err.Error(), "before 2026") {
			t.Errorf("Next: %v", err)
		}
		time.Sleep(time.Second)
		next(t, g)
	})
}

func TestSnowflakeEndsWithItsBits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := clockAt(1<<41*time.Millisecond - time.Millisecond)
		g := codegen.NewSnowflake(codegen.SnowflakeConfig{Leases: codegentest.NewLeaser(), Now: clock.Now})
		if code := next(t, g); code >= "AzL8n0Y58m8" {
			t.Errorf("code %q beyond 63 bits", code)
		}
		clock.Shift(time.Millisecond)
		if code, err := g.Next(t.Context(), codegen.Need{}); !errors.Is(err, codegen.ErrExhausted) {
			t.Errorf("code %q, %v after 2^41 ms", code, err)
		}
	})
}

// TestSnowflakeRenewsAhead: callers never wait for a lease while Run runs, and nobody renews without creates.
func TestSnowflakeRenewsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := codegentest.WithFaults(codegentest.NewLeaser(), func(context.Context, codegentest.Op) (bool, error) {
			time.Sleep(time.Second)
			return false, nil
		})
		g := codegen.NewSnowflake(codegen.SnowflakeConfig{Leases: l, Now: clockAt(time.Hour).Now})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = g.Run(ctx) })
		time.Sleep(5 * time.Second)
		_, machine, _ := fields(t, next(t, g))
		for range 600 {
			time.Sleep(time.Second)
			if _, m, _ := fields(t, next(t, g)); m != machine {
				t.Fatalf("machine %d became %d", machine, m)
			}
		}
		s := g.Stats()
		if s.Inline != 0 || s.Leases < 15 || s.Leases > 22 {
			t.Errorf("after ten minutes: %+v", s)
		}
		time.Sleep(time.Hour)
		if idle := g.Stats(); idle.Leases > s.Leases+1 {
			t.Errorf("an idle hour: %d leases", idle.Leases-s.Leases)
		}
		next(t, g)
		cancel()
		wg.Wait()
	})
}

// TestSnowflakeAndAFailingStore: what is leased is used to its end, and answers that are lost lose machine ids
// only.
func TestSnowflakeAndAFailingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down, apply := error(nil), false
		l := codegentest.WithFaults(codegentest.NewLeaser(), func(_ context.Context, op codegentest.Op) (bool, error) {
			return apply && op == codegentest.OpRaise, down
		})
		clock := clockAt(time.Hour)
		g := codegen.NewSnowflake(codegen.SnowflakeConfig{Leases: l, Now: clock.Now})
		seen := map[link.Code]bool{next(t, g): true}
		down = errors.New("connection refused")
		for i := range 200 {
			time.Sleep(time.Second)
			code, err := g.Next(t.Context(), codegen.Need{})
			switch {
			case i < 59 && (err != nil || seen[code]):
				t.Fatalf("within the lease: %q, %v", code, err)
			case i >= 60 && (!errors.Is(err, link.ErrUnavailable) || !errors.Is(err, down)):
				t.Fatalf("behind the lease: %q, %v", code, err)
			}
			seen[code] = true
			apply = i > 100
		}
		down = nil
		for range 100 {
			if code := next(t, g); seen[code] {
				t.Fatalf("code %q was generated twice", code)
			}
		}
	})
}

func BenchmarkSnowflake(b *testing.B) {
	g := codegen.NewSnowflake(codegen.SnowflakeConfig{
		Leases: codegentest.NewLeaser(), Now: time.Now, Permutation: codegen.NewPermutation(testKey),
	})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Next(b.Context(), codegen.Need{}); err != nil {
			b.Fatal(err)
		}
	}
}
