package cache_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
	"curt/internal/cache/issued"
	"curt/internal/codegen"
	"curt/internal/link"
)

// decimal is an Inverter that can be read: the id of "0001234" is 1234.
type decimal struct{}

func (decimal) ID(code link.Code) (uint64, bool) {
	if len(code) < 4 || len(code) > 10 {
		return 0, false
	}
	id, err := strconv.ParseUint(string(code), 10, 64)
	return id, err == nil
}

// aliases is a store of codes that the permutation did not make, in pages.
type aliases struct {
	codes []link.Code
	fails int // how often a page cannot be read before it can
}

func (a *aliases) Chosen(_ context.Context, after link.Cursor, n int) ([]link.Key, link.Cursor, error) {
	if a.fails > 0 {
		a.fails--
		return nil, "", errAway
	}
	from := 0
	if after != "" {
		from, _ = strconv.Atoi(string(after))
	}
	var keys []link.Key
	for _, c := range a.codes[from:min(from+n, len(a.codes))] {
		keys = append(keys, link.Key{Code: c})
	}
	if len(keys) < n {
		return keys, "", nil
	}
	return keys, link.Cursor(strconv.Itoa(from + n)), nil
}

func markAt(leased *atomic.Uint64) codegen.Mark {
	return func(_ context.Context, length int) (uint64, error) {
		if length != 9 {
			return 0, nil
		}
		return leased.Load(), nil
	}
}

func TestCodesNeverIssuedAskNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &aliases{fails: 1}
		for i := range 2500 {
			store.codes = append(store.codes, link.Code(fmt.Sprint("alias-", i)))
		}
		var leased atomic.Uint64
		leased.Store(1000)
		s := cachetest.NewSource()
		codes := issued.New(store, codegen.NewCounts(decimal{}, markAt(&leased)))
		c := newTiered(t, cache.Config{Issued: codes}, s)

		asks := func(code link.Code, want bool) {
			t.Helper()
			before := s.Lookups(link.Key{Code: code})
			wantVersion(t, c, link.Key{Code: code}, 0)
			if asked := s.Lookups(link.Key{Code: code}) > before; asked != want {
				t.Errorf("%q asked the store: %v, want %v", code, asked, want)
			}
		}
		const beyond = "100001000" // the mark and 100 million
		asks("900000001", true)    // nothing runs yet
		run(t, c.Run)
		synctest.Wait()
		asks("900000002", true) // the first page failed: the filter is not complete
		time.Sleep(1500 * time.Millisecond)
		asks(beyond, false)
		asks("100000999", true)
		asks("1234", true)       // another length, no mark, but within the margin
		asks("alias-0", true)    // an alias, on any domain
		asks("alias-2499", true) // of the last page
		asks("alias-2500", false)
		asks("not/a code", false) // no id has it

		leased.Store(2000)
		time.Sleep(time.Second)
		asks("100001001", true) // the mark rose

		c.Changed(s.Put(key("900000009"), target("https://a.example/")))
		wantVersion(t, c, key("900000009"), 1)
		if got := c.Stats(); got.Never != 3 || got.Chosen != 2501 {
			t.Errorf("%d never issued, %d in the filter; want 3 and 2501", got.Never, got.Chosen)
		}
		c.Changed(link.Change{Key: key("000000007"), Version: 2})
		if got := c.Stats().Chosen; got != 2501 {
			t.Errorf("a counted code was added to the filter: %d", got)
		}

		// A create that is announced was chosen, whatever its code looks like.
		for code, want := range map[link.Code]bool{"alias-7": true, "000000007": false, "000000008": false} {
			if got := codes.Holds(code); got != want {
				t.Errorf("Holds(%q) = %v, want %v", code, got, want)
			}
		}
		c.Changed(link.Change{Key: key("000000008"), Version: 1})
		if !codes.Holds("000000008") {
			t.Error("a code that the permutation did not make is not held")
		}
	})
}

func TestOldMarksRuleNothingOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		mark := func(context.Context, int) (uint64, error) {
			if down.Load() {
				return 0, errAway
			}
			return 0, nil
		}
		s := cachetest.NewSource()
		c := newTiered(t, cache.Config{Issued: issued.New(&aliases{}, codegen.NewCounts(decimal{}, mark))}, s)
		run(t, c.Run)
		synctest.Wait()
		wantVersion(t, c, key("900000001"), 0)
		wantLookups(t, s, key("900000001"), 0)
		down.Store(true)
		time.Sleep(62 * time.Second)
		wantVersion(t, c, key("900000001"), 0)
		wantLookups(t, s, key("900000001"), 1)
	})
}

func TestOnASharedStoreNothingIsRuledOutUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leased atomic.Uint64
		s := cachetest.NewSource()
		store := &aliases{}
		c := newTiered(t, cache.Config{
			Shared: true, Issued: issued.New(store, codegen.NewCounts(decimal{}, markAt(&leased))),
		}, s)
		run(t, c.Run)
		time.Sleep(10 * time.Second)
		wantVersion(t, c, key("900000001"), 0)
		wantLookups(t, s, key("900000001"), 1) // Follow has not begun

		follow(t, c, s)
		wantVersion(t, c, key("900000002"), 0)
		wantLookups(t, s, key("900000002"), 0)

		// Another process makes an alias, and the log is cut before we hear of it: the
		// filter is filled anew before it rules anything out again.
		s.Put(key("900000003"), target("https://a.example/"))
		store.codes = append(store.codes, "900000003")
		store.fails = 1
		s.Trim(1)
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		wantVersion(t, c, key("900000003"), 1)
		time.Sleep(2 * time.Second)
		wantVersion(t, c, key("900000004"), 0)
		wantLookups(t, s, key("900000004"), 0)

		s.SetDown(errAway)
		time.Sleep(6 * time.Second)
		s.SetDown(nil)
		wantVersion(t, c, key("900000005"), 0)
		wantLookups(t, s, key("900000005"), 1)
	})
}
