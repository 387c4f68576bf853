package codegen_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt/internal/codegen"
	"curt/internal/codegen/codegentest"
)

func openFloor(t *testing.T, l codegen.Leaser, name string) *codegen.Floor {
	t.Helper()
	f, err := codegen.OpenFloor(t.Context(), l, name, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFloor(t *testing.T) {
	codegentest.RunLeaser(t, func(t *testing.T) codegen.Leaser {
		return openFloor(t, codegentest.NewLeaser(), filepath.Join(t.TempDir(), "leases.state"))
	}, func(t *testing.T, l codegen.Leaser) codegen.Leaser {
		f, ok := l.(*codegen.Floor)
		if !ok {
			t.Fatalf("%T", l)
		}
		return openFloor(t, f.Leaser, filepath.Join(t.TempDir(), "leases.state"))
	})
}

// at returns a store whose counter of seven digits stands at a mark, as one that was restored.
func at(t *testing.T, mark uint64) codegen.Leaser {
	t.Helper()
	l := codegentest.NewLeaser()
	if err := l.Skip(t.Context(), codegen.Counter(codegen.DefaultPrefix, 7), mark); err != nil {
		t.Fatal(err)
	}
	return l
}

// A store that leased less than this process has seen is refused, by the last lease or by what others had
// leased before the start, until the ids are skipped.
func TestARestoredStoreIsRefused(t *testing.T) {
	counter := codegen.Counter(codegen.DefaultPrefix, 7)
	for name, leased := range map[string]uint64{"by its own leases": 100, "by leases of others": 0} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "leases.state")
			f := openFloor(t, at(t, 20_000-leased), file)
			if leased > 0 {
				if _, err := f.Lease(t.Context(), counter, leased); err != nil {
					t.Fatal(err)
				}
			}
			restored := at(t, 19_999)
			for range 2 { // the refused start has changed nothing
				if _, err := codegen.OpenFloor(t.Context(), restored, file, slog.New(slog.DiscardHandler)); !errors.Is(err, codegen.ErrRestored) || !strings.Contains(err.Error(), "20000") {
					t.Fatalf("a store that lies behind: %v", err)
				}
			}
			openFloor(t, at(t, 20_000), file) // the same as before
			if _, err := codegen.SkipRestored(t.Context(), restored, time.Now()); err != nil {
				t.Fatal(err)
			}
			if first, err := openFloor(t, restored, file).Lease(t.Context(), counter, 10); err != nil || first < 20_000 {
				t.Errorf("after the skip %d was leased: %v", first, err)
			}
		})
	}
}

// exchanged is a Leaser whose store is put in the place of another: at once, or with the next lease.
type exchanged struct {
	codegen.Leaser

	next codegen.Leaser
}

// Lease implements codegen.Leaser.
func (e *exchanged) Lease(ctx context.Context, counter string, n uint64) (uint64, error) {
	if e.next != nil {
		e.Leaser, e.next = e.next, nil
	}
	return e.Leaser.Lease(ctx, counter, n)
}

// A store that goes back under a running server, as by a fail-over that lost commits, leases it nothing again.
func TestAStoreThatGoesBackUnderAServerIsSkippedOn(t *testing.T) {
	counter := codegen.Counter(codegen.DefaultPrefix, 7)
	var said bytes.Buffer
	store := &exchanged{Leaser: at(t, 50_000)}
	f, err := codegen.OpenFloor(t.Context(), store, filepath.Join(t.TempDir(), "leases.state"), slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for name, fall := range map[string]func(){
		"between leases":                 func() { store.Leaser = at(t, 49_000) },
		"between the look and the lease": func() { store.next = at(t, 49_000) },
	} {
		said.Reset()
		fall()
		want := bounds{10_050_000, 60_050_000} // the second time from where the first has led
		first, err := f.Lease(t.Context(), counter, 10)
		if err != nil || !want.hold(first) || strings.Count(said.String(), "skipped ids") != 1 {
			t.Fatalf("%s: leased %d, %v; want %v; the log says %q", name, first, err, want, said.String())
		}
		if next, err := f.Lease(t.Context(), counter, 10); err != nil || next != first+10 {
			t.Errorf("%s: then leased %d, %v", name, next, err)
		}
	}
}

// A record that is gone, damaged or cannot be written stops neither a start nor a lease; the log says so.
func TestARecordOfLeasesIsNoCondition(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"gone":        os.Remove,
		"damaged":     func(file string) error { return os.WriteFile(file, []byte("{}"), 0o600) },
		"not written": func(file string) error { return os.RemoveAll(filepath.Dir(file)) },
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "data", "leases.state")
			if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			openFloor(t, at(t, 500), file)
			if err := spoil(file); err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			f, err := codegen.OpenFloor(t.Context(), at(t, 400), file, slog.New(slog.NewTextHandler(&said, nil)))
			if err != nil {
				t.Fatal(err)
			}
			if first, err := f.Lease(t.Context(), codegen.Counter(codegen.DefaultPrefix, 7), 10); err != nil || first != 400 {
				t.Errorf("leased %d: %v", first, err)
			}
			if want := map[string]string{"damaged": "was damaged", "not written": "writing the record"}[name]; want != "" && !strings.Contains(said.String(), want) {
				t.Errorf("the log says %q", said.String())
			}
		})
	}
}

// dated is a store that was last written at a time.
type dated struct {
	codegen.Leaser

	written time.Time
	err     error
}

func (d dated) Written(context.Context) (time.Time, error) { return d.written, d.err }

// What is skipped after a restore grows with the age of the restored store, and is as much as may be where
// that is unknown.
func TestSkipRestored(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		store codegen.Leaser
		want  bounds // of seven digits
	}{
		"just written":      {dated{Leaser: codegentest.NewLeaser(), written: now}, bounds{10_000_000, 20_000_000}},
		"in the future":     {dated{Leaser: codegentest.NewLeaser(), written: now.Add(time.Minute)}, bounds{10_000_000, 20_000_000}},
		"written yesterday": {dated{Leaser: codegentest.NewLeaser(), written: now.Add(-24 * time.Hour)}, bounds{864_000_000, 874_000_000}},
		"never written":     {dated{Leaser: codegentest.NewLeaser()}, bounds{codegen.Space(7) / 64, codegen.Space(7) / 64}},
		"not dated":         {codegentest.NewLeaser(), bounds{codegen.Space(7) / 64, codegen.Space(7) / 64}},
	} {
		written, err := codegen.SkipRestored(t.Context(), tt.store, now)
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := tt.store.(dated); ok && !written.Equal(d.written) {
			t.Errorf("%s: written %v, want %v", name, written, d.written)
		}
		if got := mark(t, tt.store, 7); !tt.want.hold(got) {
			t.Errorf("%s: %d ids skipped, want %v", name, got, tt.want)
		}
		for length := codegen.MinLength; length <= codegen.MaxLength; length++ {
			if got := mark(t, tt.store, length); got == 0 || got > codegen.Space(length)/64 {
				t.Errorf("%s: %d ids of %d digits skipped", name, got, length)
			}
		}
	}
	broken := errors.New("no answer")
	if _, err := codegen.SkipRestored(t.Context(), dated{Leaser: codegentest.NewLeaser(), err: broken}, now); !errors.Is(err, broken) {
		t.Errorf("a store that cannot be asked: %v", err)
	}
}
