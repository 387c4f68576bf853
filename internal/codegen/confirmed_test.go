package codegen_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/codegen"
	"curt/internal/codegen/codegentest"
	"curt/internal/link"
)

// pair is a source and a store that Confirmed was made over.
type pair struct{ source, store codegen.Leaser }

// confirmed opens a Confirmed over two models, as RunLeaser has it.
func confirmed() (open func(*testing.T) codegen.Leaser, again func(*testing.T, codegen.Leaser) codegen.Leaser) {
	pairs := map[codegen.Leaser]pair{}
	from := func(p pair) codegen.Leaser {
		l := codegen.NewConfirmed(p.source, p.store, nil)
		pairs[l] = p
		return l
	}
	return func(*testing.T) codegen.Leaser { return from(pair{codegentest.NewLeaser(), codegentest.NewLeaser()}) },
		func(_ *testing.T, l codegen.Leaser) codegen.Leaser { return from(pairs[l]) }
}

func TestConfirmed(t *testing.T) {
	open, again := confirmed()
	codegentest.RunLeaser(t, open, again)
}

func TestSnowflakeOverConfirmed(t *testing.T) {
	open, again := confirmed()
	codegentest.RunSnowflake(t, open, again)
}

// rewound is a Leaser that can be put back to an earlier state, or to another one.
type rewound struct {
	mu sync.RWMutex
	codegen.Leaser
}

func (r *rewound) to(t *testing.T, marks map[string]uint64) {
	t.Helper()
	fresh := codegentest.NewLeaser()
	for counter, mark := range marks {
		if err := fresh.Skip(t.Context(), counter, mark); err != nil {
			t.Error(err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Leaser = fresh
}

func (r *rewound) now() codegen.Leaser {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.Leaser
}

func (r *rewound) Lease(ctx context.Context, counter string, n uint64) (uint64, error) {
	return r.now().Lease(ctx, counter, n)
}

func (r *rewound) Leased(ctx context.Context, counter string) (uint64, error) {
	return r.now().Leased(ctx, counter)
}

func (r *rewound) Raise(ctx context.Context, counter string, from, to uint64) error {
	return r.now().Raise(ctx, counter, from, to)
}

// TestASourceThatGoesBackLeasesNothingTwice puts the source back all the time while three processes lease.
func TestASourceThatGoesBackLeasesNothingTwice(t *testing.T) {
	source, store := &rewound{Leaser: codegentest.NewLeaser()}, codegentest.NewLeaser()
	var (
		mu  sync.Mutex
		got [][2]uint64
		wg  sync.WaitGroup
	)
	for i := range 3 {
		l := codegen.NewConfirmed(source, store, nil)
		for range 4 {
			wg.Go(func() {
				for n := range uint64(300) {
					n = n%9 + 1
					first, err := l.Lease(t.Context(), "codes-7", n)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					got = append(got, [2]uint64{first, first + n})
					back := len(got)%100 == 0
					mu.Unlock()
					if back && i == 0 {
						source.to(t, map[string]uint64{"codes-7": first / 2})
					}
				}
			})
		}
	}
	wg.Wait()
	slices.SortFunc(got, func(a, b [2]uint64) int { return int(int64(a[0]) - int64(b[0])) })
	for i := 1; i < len(got); i++ {
		if got[i][0] < got[i-1][1] {
			t.Errorf("%v and %v overlap", got[i-1], got[i])
		}
	}
	if len(got) != 3600 {
		t.Errorf("%d leases, want 3,600", len(got))
	}
}

// A source that was emptied is moved to the store, a store that was restored follows the source.
func TestTheHigherCounterCounts(t *testing.T) {
	source, store := &rewound{Leaser: codegentest.NewLeaser()}, &rewound{Leaser: codegentest.NewLeaser()}
	l := codegen.NewConfirmed(source, store, slog.New(slog.NewTextHandler(t.Output(), nil)))
	lease := func(want uint64) {
		t.Helper()
		if first, err := l.Lease(t.Context(), "codes-7", 10); err != nil || first != want {
			t.Errorf("Lease: %d, %v; want %d", first, err, want)
		}
	}
	lease(0)
	source.to(t, map[string]uint64{"codes-7": 1000})
	lease(1000)
	source.to(t, nil)
	lease(1010)
	if l.Corrections() != 1 {
		t.Errorf("the source was moved %d times, want once", l.Corrections())
	}
	store.to(t, nil)
	lease(1020)
	if mark, err := store.Leased(t.Context(), "codes-7"); err != nil || mark != 1030 {
		t.Errorf("the store is at %d, %v; want 1030", mark, err)
	}
	source.to(t, nil)
	lease(1030)
	if err := l.Raise(t.Context(), "codes-7", 1000, 2000); !errors.Is(err, link.ErrConflict) {
		t.Errorf("Raise from a mark of the past: %v, want ErrConflict", err)
	}
	source.to(t, nil)
	if err := l.Raise(t.Context(), "codes-7", 1040, 2000); err != nil {
		t.Errorf("Raise after the source went back: %v", err)
	}
	lease(2000)
}

// A source that is far ahead is followed only when all processes know: they rule codes out by the store's mark.
func TestFarJumpsAreKnownBeforeCodesAreHandedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, store := codegentest.NewLeaser(), codegentest.NewLeaser()
		if err := source.Skip(t.Context(), "codes-7", 900_000_000); err != nil {
			t.Fatal(err)
		}
		p := codegen.NewPermutation(testKey)
		counts := codegen.NewCounts(p, func(ctx context.Context, length int) (uint64, error) {
			return store.Leased(ctx, codegen.Counter(codegen.DefaultPrefix, length))
		})
		ctx, cancel := context.WithCancel(t.Context())
		var reading sync.WaitGroup
		reading.Go(func() {
			for ctx.Err() == nil {
				if err := counts.Refresh(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				time.Sleep(time.Second) // of the bubble's clock, as the cache does
			}
		})
		var log strings.Builder
		g := newRange(codegen.NewConfirmed(source, store, slog.New(slog.NewTextHandler(&log, nil))), 7, 1000)
		began := time.Now()
		if code := next(t, g); !counts.Perhaps(code) {
			t.Errorf("%s was handed out, and another process takes it for never issued", code)
		}
		if waited := time.Since(began); waited != 2*time.Second || !strings.Contains(log.String(), "far ahead") {
			t.Errorf("waited %s, want 2 s; log %q", waited, log.String())
		}
		began = time.Now()
		for range 5000 {
			next(t, g)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("later leases waited %s", waited)
		}
		cancel()
		reading.Wait()
	})
}

// What either says of an error is passed on, and loses ids only.
func TestConfirmedPassesErrorsOn(t *testing.T) {
	down := errors.New("connection refused")
	for _, failing := range []codegentest.Op{codegentest.OpLease, codegentest.OpLeased, codegentest.OpRaise} {
		for _, inSource := range []bool{true, false} {
			for _, apply := range []bool{true, false} {
				broken := false
				faulty := func(l codegen.Leaser) codegen.Leaser {
					return codegentest.WithFaults(l, func(_ context.Context, op codegentest.Op) (bool, error) {
						if broken && op == failing {
							return apply, down
						}
						return false, nil
					})
				}
				source, store := codegen.Leaser(codegentest.NewLeaser()), codegen.Leaser(codegentest.NewLeaser())
				if inSource {
					source = faulty(source)
				} else {
					store = faulty(store)
				}
				l, end := codegen.NewConfirmed(source, store, nil), uint64(0)
				for i := range 20 {
					broken = i%2 == 1
					first, err := l.Lease(t.Context(), "codes-7", 10)
					switch {
					case err != nil && (!broken || !errors.Is(err, down)):
						t.Fatalf("%s: Lease: %v", failing, err)
					case err == nil && first < end:
						t.Fatalf("%s: ids from %d were leased again", failing, first)
					case err == nil:
						end = first + 10
					}
				}
			}
		}
	}
}
