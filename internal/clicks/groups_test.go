package clicks_test

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
	"curt/internal/clicks/clickstest"
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
		store := new(clickstest.Memory)
		dir, random := t.TempDir(), rand.New(rand.NewPCG(3, 4))
		var raws []*clicks.Raw
		for range 3 { // lives
			l := begin(t, dir, store, clicks.FoldConfig{Groups: groups, Every: time.Minute})
			for range 4 {
				for range 300 {
					raws = append(raws, randomClick(random))
					l.ring.Record(raws[len(raws)-1])
				}
				l.drain(t)
				time.Sleep(5 * time.Second) // until what failed was tried again
			}
			l.end(t)
		}
		want := map[string]clicks.Counts{}
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
