package ratelimittest

import (
	"sync"
	"testing"
	"time"

	"curt/internal/ratelimit"
)

// slack is how far a Level may be from what was charged: time goes by, and a Ledger may count in
// milliseconds and round up.
const slack = 2 * time.Second

// Ledger proves Ledgers. open returns three of servers that share one, which is empty for kind.
func Ledger(t *testing.T, open func(t *testing.T, kind string) [3]ratelimit.Ledger) {
	const minute, hour = time.Minute, time.Hour
	level := func(t *testing.T, l ratelimit.Ledger, bucket uint64, add, want time.Duration) {
		t.Helper()
		got, err := l.Add(t.Context(), []ratelimit.Spent{{Bucket: bucket, Add: add, Size: hour}})
		if err != nil {
			t.Fatal(err)
		}
		for _, level := range got {
			if level.Bucket != bucket {
				continue
			}
			if level.Full > want+slack || level.Full < want-slack {
				t.Errorf("bucket %x is full in %v, want %v", bucket, level.Full, want)
			}
			return
		}
		t.Errorf("no level of bucket %x in %v", bucket, got)
	}
	t.Run("servers add up", func(t *testing.T) {
		all := open(t, "sum")
		for i, l := range all {
			level(t, l, 7, 10*minute, time.Duration(i+1)*10*minute)
			level(t, l, 1<<63+7, 20*minute, time.Duration(i+1)*20*minute)
		}
		level(t, all[1], 7, 0, 30*minute)
	})
	t.Run("more than the limit is owed, up to twice the bucket and a charge", func(t *testing.T) {
		all := open(t, "debt")
		for i, want := range []time.Duration{50 * minute, 100 * minute, 120 * minute} {
			level(t, all[i], 7, 50*minute, want)
		}
	})
	t.Run("many at once lose nothing", func(t *testing.T) {
		all := open(t, "many")
		var wg sync.WaitGroup
		for i := range 24 {
			wg.Go(func() {
				spent := []ratelimit.Spent{{Bucket: 1, Add: minute, Size: hour}, {Bucket: 2, Add: minute, Size: hour}, {Bucket: 3, Add: minute, Size: hour}}
				if i%2 == 1 {
					spent[0], spent[2] = spent[2], spent[0]
				}
				if _, err := all[i%len(all)].Add(t.Context(), spent); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for bucket := range uint64(3) {
			level(t, all[0], bucket+1, 0, 24*minute)
		}
	})
	t.Run("kinds are apart", func(t *testing.T) {
		level(t, open(t, "one")[0], 7, 10*minute, 10*minute)
		level(t, open(t, "two")[0], 7, 20*minute, 20*minute)
	})
}

// Tally proves Tallies. open returns two of servers that share one, which is empty.
func Tally(t *testing.T, open func(t *testing.T) [2]ratelimit.Tally) {
	const now = 29_000_000 // minutes since 1970
	count := func(t *testing.T, c ratelimit.Tally, since int64, add ...ratelimit.Count) map[ratelimit.Count]bool {
		t.Helper()
		sums, err := c.Count(t.Context(), add, since)
		if err != nil {
			t.Fatal(err)
		}
		all := map[ratelimit.Count]bool{}
		for _, s := range sums {
			all[s] = true
		}
		if len(all) != len(sums) {
			t.Errorf("a minute twice: %v", sums)
		}
		return all
	}
	all := open(t)
	count(t, all[0], now-60, ratelimit.Count{Creator: 1, Minute: now - 1, Links: 20}, ratelimit.Count{Creator: 1 << 63, Minute: now, Links: 5}, ratelimit.Count{Creator: 1, Minute: now, Links: 3})
	got := count(t, all[1], now-60, ratelimit.Count{Creator: 1, Minute: now, Links: 30})
	if len(got) != 2 || !got[ratelimit.Count{Creator: 1, Minute: now - 1, Links: 20}] || !got[ratelimit.Count{Creator: 1, Minute: now, Links: 33}] {
		t.Errorf("of both servers: %v", got)
	}
	got = count(t, all[0], now, ratelimit.Count{Creator: 1 << 63, Minute: now + 1, Links: 1})
	if len(got) != 1 || !got[ratelimit.Count{Creator: 1 << 63, Minute: now + 1, Links: 1}] {
		t.Errorf("after the newest minute before: %v", got)
	}
}
