package fill_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"curt/bench/internal/fill"
	"curt/internal/backend/sqlite"
	"curt/internal/link"
)

// lines counts progress lines and may end the fill after the first.
type lines struct {
	n    int
	stop context.CancelFunc
}

func (l *lines) Write(p []byte) (int, error) {
	l.n += strings.Count(string(p), "\n")
	if l.stop != nil {
		l.stop()
	}
	return len(p), nil
}

func filled(t *testing.T, folder string, n int) *fill.Links {
	t.Helper()
	l, err := fill.Fill(t.Context(), folder, n, &lines{})
	if err != nil {
		t.Fatal(err)
	}
	if l.Count() != n {
		t.Fatalf("%d links, want %d", l.Count(), n)
	}
	return l
}

func TestFillStoresEveryLinkAndGoesOnLater(t *testing.T) {
	folder := t.TempDir()
	filled(t, folder, 12_000)
	l := filled(t, folder, 25_000)
	store, err := sqlite.OpenLinks(t.Context(), sqlite.LinksConfig{Path: filepath.Join(folder, fill.Database)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	seen := map[link.Code]bool{}
	order := fill.NewOrder(l, 1)
	for order.Left() > 0 {
		code := order.Next()
		seen[code] = true
		if len(seen)%50 != 0 {
			continue
		}
		target, err := store.Lookup(t.Context(), link.Key{Code: code})
		if err != nil {
			t.Fatalf("look up %s: %v", code, err)
		}
		if n := len(target.Destination); n < 80 || n > 120 || target.Redirect != 302 {
			t.Fatalf("%s leads to %q by %d", code, target.Destination, target.Redirect)
		}
	}
	if len(seen) != 25_000 {
		t.Errorf("%d distinct codes of 25,000", len(seen))
	}
	if fewer := filled(t, folder, 10_000); fewer.Code(9_999) != l.Code(9_999) {
		t.Error("the first links changed")
	}
}

func TestInterruptedFillKeepsWhatItStored(t *testing.T) {
	folder := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &lines{stop: cancel}
	first, err := fill.Fill(ctx, folder, 10_000, out) // its last progress line cancels it: too late
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if out.n == 0 {
		t.Error("no progress was shown")
	}
	if _, err := fill.Fill(ctx, folder, 30_000, out); !errors.Is(err, context.Canceled) {
		t.Fatalf("error of an ended fill: %v", err)
	}
	l := filled(t, folder, 20_000)
	if first != nil && l.Code(0) != first.Code(0) {
		t.Error("the first fill was thrown away")
	}
}

func TestOrderIsRandomAndNotSorted(t *testing.T) {
	l := filled(t, t.TempDir(), 1_000)
	a, b, same := fill.NewOrder(l, 1), fill.NewOrder(l, 2), 0
	for i := range 1_000 {
		if a.Next() == b.Next() {
			same++
		}
		if a.Left() != 999-i {
			t.Fatalf("%d left after %d", a.Left(), i+1)
		}
	}
	if same > 20 {
		t.Errorf("two seeds agree in %d of 1,000 places", same)
	}
}
