package linktest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
)

const same = "https://example.com/same"

// twin is a link to the shared destination; n tells twins apart.
func twin(n int, code link.Code) link.Link {
	l := sample(n, code)
	l.Destination = same
	return l
}

func dedupes(t *testing.T, h Harness) {
	s := h.Open(t)
	var made []link.Link
	for i, code := range []link.Code{"youngest", "Oldest7", "another"} {
		l := twin([]int{30, 10, 20}[i], code)
		l.CodeKind = Kind(code == "Oldest7")
		made = append(made, mustCreate(t, s, l))
	}
	foreign := twin(1, "foreign")
	foreign.Workspace = "foreign"
	mustCreate(t, s, foreign)
	expect := func(code link.Code) {
		t.Helper()
		got, err := s.(link.Deduper).FindSame(t.Context(), twin(0, ""), epoch)
		if code == "" {
			want(t, "find nothing", err, link.ErrNotFound)
			return
		}
		if err != nil || !cmp.Equal(got, mustGet(t, s, link.Key{Code: code})) {
			t.Errorf("found %s, %v, want %s", got.Key, err, code)
		}
	}
	expect("Oldest7")
	made[1].Status = link.Disabled
	made[1] = mustReplace(t, s, made[1])
	expect("another")
	made[1].Status = link.Active
	made[1] = mustReplace(t, s, made[1])
	expect("Oldest7")
	made[1].Safety = link.Warn
	mustReplace(t, s, made[1])
	made[2].Destination += "/moved"
	mustReplace(t, s, made[2])
	expect("youngest")
	mustReplace(t, s, made[0].Tombstone(epoch))
	expect("")
	nobody := twin(0, "")
	nobody.Workspace = "nobody"
	_, err := s.(link.Deduper).FindSame(t.Context(), nobody, epoch)
	want(t, "find in an unknown workspace", err, link.ErrNotFound)
}

// standsIn asks for every field that visitors notice, and for those that they do not.
func standsIn(t *testing.T, h Harness) {
	at := epoch.Add(time.Hour)
	for name, change := range map[string]func(*link.Link){
		"domain":        func(l *link.Link) { l.Key.Domain = "b.example" },
		"redirect":      func(l *link.Link) { l.Redirect = 301 },
		"start":         func(l *link.Link) { l.Starts = at },
		"expiry":        func(l *link.Link) { l.Expires = at },
		"bound":         func(l *link.Link) { l.MaxClicks = 1 << 40 },
		"fallback":      func(l *link.Link) { l.Fallback = "https://example.org/" },
		"forward_query": func(l *link.Link) { l.ForwardQuery = true },
		"noindex":       func(l *link.Link) { l.NoIndex = true },
		"cacheable":     func(l *link.Link) { l.Cacheable = true },
	} {
		s := h.Open(t)
		other := twin(1, "other")
		change(&other)
		other = mustCreate(t, s, other)
		_, err := s.(link.Deduper).FindSame(t.Context(), twin(0, ""), epoch)
		want(t, "find with another "+name, err, link.ErrNotFound)
		got, err := s.(link.Deduper).FindSame(t.Context(), other, epoch)
		if name == "bound" {
			want(t, "find with the same bound", err, link.ErrNotFound)
		} else if err != nil || got.ID != other.ID {
			t.Errorf("with the same %s: %s, %v", name, got.Key, err)
		}
	}
	s := h.Open(t)
	titled := twin(1, "titled")
	titled.Title, titled.Tags, titled.CreatedBy, titled.Expires = "title", []string{"tag"}, "somebody", at
	mustCreate(t, s, titled)
	wanted := twin(0, "")
	wanted.Expires = at
	if got, err := s.(link.Deduper).FindSame(t.Context(), wanted, at.Add(-time.Millisecond)); err != nil || got.ID != titled.ID {
		t.Errorf("a millisecond before the expiry: %s, %v", got.Key, err)
	}
	_, err := s.(link.Deduper).FindSame(t.Context(), wanted, at)
	want(t, "find at the expiry", err, link.ErrNotFound)
}

// findOrCreates lets many callers over two handles want the same.
func findOrCreates(t *testing.T, h Harness) {
	const callers = 1000
	stores := handles(t, h)
	var made atomic.Int64
	codes := make([]link.Code, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			l, found, err := stores[i%2].(link.Deduper).FindOrCreate(t.Context(), twin(i, link.Code(fmt.Sprintf("twin%04d", i))), epoch)
			if err != nil {
				t.Errorf("find or create: %v", err)
			}
			if !found {
				made.Add(1)
			}
			codes[i] = l.Key.Code
		})
	}
	wg.Wait()
	for i, code := range codes {
		if code != codes[0] {
			t.Fatalf("caller %d got %s, the first %s", i, code, codes[0])
		}
	}
	if all := walkList(t, stores[0], link.Filter{}, 10, func() {}); len(all) != 1 || made.Load() != 1 {
		t.Errorf("%d links, %d callers made one", len(all), made.Load())
	}
}

// dedupeAgain repeats a call whose acknowledgement was lost.
func dedupeAgain(t *testing.T, h Harness) {
	s := h.Open(t)
	d := s.(link.Deduper)
	call := func(l link.Link, code link.Code, expected bool) {
		t.Helper()
		got, found, err := d.FindOrCreate(t.Context(), l, epoch)
		if err != nil || found != expected || got.Key.Code != code {
			t.Errorf("%s: got %s, found %t, %v", l.Key, got.Key, found, err)
		}
	}
	call(twin(5, "first"), "first", false)
	call(twin(5, "first"), "first", false)
	call(twin(6, "second"), "first", true)
	mustReplace(t, s, mustGet(t, s, link.Key{Code: "first"}).Tombstone(epoch))
	call(twin(7, "third"), "third", false)
	call(twin(5, "first"), "first", false) // now a tombstone, and still the caller's own
	taken := twin(8, "third")
	taken.Destination += "/else"
	_, _, err := d.FindOrCreate(t.Context(), taken, epoch)
	want(t, "find or create over a taken code", err, link.ErrExists)
	_, _, err = d.FindOrCreate(t.Context(), link.Link{}, epoch)
	want(t, "find or create nothing", err, link.ErrInvalid)
}

// Entries makes links the entries of a batch.
func Entries(links ...link.Link) []link.Creation {
	entries := make([]link.Creation, len(links))
	for i, l := range links {
		entries[i].Link = l
	}
	return entries
}

func batches(t *testing.T, h Harness) {
	s := h.Open(t)
	mustCreate(t, s, sample(1, "taken"))
	many := []link.Link{sample(2, "taken"), sample(3, "new"), {}, sample(3, "new"), sample(4, "Minted7")}
	many[4].CodeKind = link.Counted
	results, err := s.(link.Batcher).CreateMany(t.Context(), epoch, Entries(many...))
	if err != nil || len(results) != len(many) {
		t.Fatalf("%d results, %v", len(results), err)
	}
	for i, sentinel := range []error{link.ErrExists, nil, link.ErrInvalid, nil, nil} {
		want(t, "result of "+many[i].Key.String(), results[i].Err, sentinel)
		if sentinel == nil && !cmp.Equal(results[i].Link, mustGet(t, s, many[i].Key)) {
			t.Errorf("result %d: %+v", i, results[i].Link)
		}
	}
}

func batchDedupes(t *testing.T, h Harness) {
	s := h.Open(t)
	entries := Entries(twin(3, "first"), twin(4, "second"), twin(5, "third"), twin(6, "first"))
	if !h.Features.Deduper {
		t.Skip("the driver finds no links")
	}
	entries[1].Dedupe = true
	for range 2 { // the second call is a retry
		results, err := s.(link.Batcher).CreateMany(t.Context(), epoch, entries)
		if err != nil || len(results) != 4 {
			t.Fatalf("%d results, %v", len(results), err)
		}
		if r := results[1]; r.Err != nil || !r.Found || r.Link.Key.Code != "first" {
			t.Errorf("the second entry: %s, found %t, %v", r.Link.Key, r.Found, r.Err)
		}
		if r := results[2]; r.Err != nil || r.Found || r.Link.Key.Code != "third" {
			t.Errorf("the third entry: %s, found %t, %v", r.Link.Key, r.Found, r.Err)
		}
		want(t, "the fourth entry", results[3].Err, link.ErrExists)
	}
}
