package fold_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog/clicklogtest"
	"curt/internal/clicks/fold"
	"curt/internal/clicks/rollup"
	"curt/internal/clicks/rollup/rolluptest"
	"curt/internal/link"
)

// TestGroupsAreTheSumsOfTheirLinks counts clicks of links of two groups and of none, while
// now and then nobody can say whose links are.
func TestGroupsAreTheSumsOfTheirLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groupOf := func(k link.Key) string { return []string{"even", "odd", ""}[k.Code[len(k.Code)-1]%3] }
		var asked, failures atomic.Int64
		groups := func(_ context.Context, keys []link.Key) ([]string, error) {
			if asked.Add(1)%2 == 0 {
				failures.Add(1)
				return nil, errors.New("nobody can say")
			}
			names := make([]string, len(keys))
			for i, k := range keys {
				names[i] = groupOf(k)
			}
			return names, nil
		}
		store := new(rolluptest.Memory)
		dir, random := t.TempDir(), rand.New(rand.NewPCG(3, 4))
		var raws []*clicks.Raw
		for range 3 { // lives
			l := begin(t, dir, store, fold.Config{Groups: groups, Every: time.Minute})
			for range 4 {
				for range 300 {
					raws = append(raws, clicklogtest.RandomClick(random))
					l.ring.Record(raws[len(raws)-1])
				}
				l.drain(t)
				time.Sleep(5 * time.Second) // until what failed was tried again
			}
			l.end(t)
		}
		want := map[string]rollup.Counts{}
		for k, s := range naive(raws) {
			if name := groupOfKey(k, groupOf); name != "" {
				sum := want[name]
				sum.Add(s.Total.Counts)
				want[name] = sum
			}
		}
		for _, name := range []string{"even", "odd"} {
			totals, _, err := store.Totals(t.Context(), []link.Key{clicks.GroupKey(name)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want[name], totals[0].Counts); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		compareWithNaive(t, store, raws)
		if failures.Load() == 0 || want["even"].Clicks == 0 {
			t.Errorf("nothing was shown: %d failures, %+v", failures.Load(), want)
		}
	})
}

func groupOfKey(k link.Key, of func(link.Key) string) string {
	if k == (link.Key{}) {
		return "" // orphans are nobody's
	}
	return of(k)
}

// TestClicksOfALinkThatMovedStay counts a link for one group, and from when it is another's on for
// that: what was counted stays.
func TestClicksOfALinkThatMovedStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group atomic.Value
		group.Store("from")
		groups := func(_ context.Context, keys []link.Key) ([]string, error) {
			names := make([]string, len(keys))
			for i := range names {
				names[i] = group.Load().(string)
			}
			return names, nil
		}
		store := new(rolluptest.Memory)
		l := begin(t, t.TempDir(), store, fold.Config{Groups: groups, Every: time.Minute})
		click := clicklogtest.RandomClick(rand.New(rand.NewPCG(1, 2)))
		click.Outcome, click.Flags = clicks.Redirected, 0
		moved := link.Key{Domain: link.Domain(click.Domain), Code: link.Code(click.Code)}
		count := func(n int) {
			for range n {
				l.ring.Record(click)
			}
			l.drain(t)
			time.Sleep(5 * time.Second) // of the bubble, until the fold has read them
		}
		count(2)
		group.Store("to")
		count(1) // nobody has said so yet
		l.fold.Changed(moved)
		count(4)
		group.Store("back")
		l.fold.Changed()
		count(8)
		l.end(t)
		totals, _, err := store.Totals(t.Context(), []link.Key{clicks.GroupKey("from"), clicks.GroupKey("to"), clicks.GroupKey("back")})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []uint64{3, 4, 8} {
			if got := totals[i].Clicks; got != want {
				t.Errorf("group %d: %d clicks, want %d", i, got, want)
			}
		}
	})
}
