package redis_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"curt/internal/backend/redis"
	"curt/internal/cache"
	"curt/internal/link"
)

func entry(v link.Version) cache.Entry {
	return cache.Entry{
		Target: link.Target{Destination: "https://example.com/", Version: v, Redirect: 302, Status: link.Active, Safety: link.Clean},
		Until:  time.Now().Add(time.Hour).UTC().Truncate(time.Millisecond),
	}
}

func encoded(t testing.TB, e cache.Entry) []byte {
	t.Helper()
	b, err := redis.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAnEntryIsSmall(t *testing.T) {
	e := entry(7)
	e.AsOf, e.Cost = link.Heads{1_000_000}, time.Millisecond
	b := encoded(t, e)
	if n := len(b) - len(e.Target.Destination); n > 40 {
		t.Errorf("%d bytes besides the destination", n)
	}
}

// Where the change log has one partition, entries are what the releases before write and read.
func TestEntriesOfOnePartitionStayWhatTheyAre(t *testing.T) {
	e, until := entry(7), time.UnixMilli(1_773_500_966_123)
	e.AsOf, e.Cost, e.Until = link.Heads{1_000_000}, time.Millisecond, until
	for _, c := range []struct {
		entry cache.Entry
		want  string
	}{
		{e, "0100000000000000000007c0843dd693a9ce9d67e807ae0201010000140068747470733a2f2f6578616d706c652e636f6d2f"},
		{cache.Entry{Missing: true, Until: until}, "010001000000000000000000d693a9ce9d670000000000000000"},
	} {
		if got := fmt.Sprintf("%x", encoded(t, c.entry)); got != c.want {
			t.Errorf("%+v is written as %s, want %s", c.entry, got, c.want)
		}
	}
}

func TestWhatNobodyOfUsWroteIsRefused(t *testing.T) {
	good := encoded(t, entry(1))
	with := func(change func(*cache.Entry)) []byte {
		e := entry(1)
		change(&e)
		return encoded(t, e)
	}
	for name, b := range map[string][]byte{
		"nothing":         {},
		"another format":  append([]byte{2}, good[1:]...),
		"cut short":       good[:len(good)-1],
		"more behind":     append(bytes.Clone(good), 0),
		"only a head":     good[:11],
		"a line end":      with(func(e *cache.Entry) { e.Target.Destination = "https://a.example/\r\nSet-Cookie: a=b" }),
		"in the fallback": with(func(e *cache.Entry) { e.Target.Fallback = "https://a.example/\n" }),
		"no destination":  with(func(e *cache.Entry) { e.Target.Destination = "" }),
		"no redirect":     with(func(e *cache.Entry) { e.Target.Redirect = 200 }),
		"no status":       with(func(e *cache.Entry) { e.Target.Status = 9 }),
		"no safety":       with(func(e *cache.Entry) { e.Target.Safety = 0 }),
		"missing, of one": with(func(e *cache.Entry) { e.Missing = true }),
		"void, of none":   encoded(t, cache.Entry{Void: true}),
		"text":            []byte("https://example.com/ and more than a head"),
	} {
		if e, ok := redis.Decode(b); ok {
			t.Errorf("%s: read as %+v", name, e)
		}
	}
	pending := entry(0) // of a link that waits to be written
	if e, ok := redis.Decode(encoded(t, pending)); !ok || !reflect.DeepEqual(e, pending) {
		t.Errorf("a pending link is read as %+v", e)
	}
	if _, err := redis.Encode(entry(1 << 53)); err == nil {
		t.Error("a version that a script cannot compare was written")
	}
}

func FuzzEntry(f *testing.F) {
	f.Add(encoded(f, entry(1)))
	f.Add(encoded(f, cache.Entry{Missing: true}))
	f.Add(encoded(f, cache.Entry{Missing: true, AsOf: link.Heads{1, 0, 300}}))
	f.Add(encoded(f, cache.Entry{Target: link.Target{Version: 3}, Void: true}))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, ok := redis.Decode(b)
		if !ok {
			return
		}
		again, err := redis.Encode(e)
		if err != nil {
			t.Fatalf("%x is read and cannot be written: %v", b, err)
		}
		if twice, ok := redis.Decode(again); !ok || !reflect.DeepEqual(twice, e) {
			t.Fatalf("%+v became %+v, %v", e, twice, ok)
		}
	})
}
