package linktest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"curt/internal/link"
)

// events proves a link.EventLog: what the entries of a link's life say, that old values go with
// the link, and that appended entries stand between the others.
func events(t *testing.T, h Harness) {
	t.Run("of a life", func(t *testing.T) { eventsOfALife(t, handles(t, h)) })
	t.Run("exhausted", func(t *testing.T) { eventsOfTheLastClick(t, handles(t, h)) })
	t.Run("appended", func(t *testing.T) { appended(t, handles(t, h)) })
	t.Run("expiry changes", func(t *testing.T) { expiryChanges(t, handles(t, h)) })
}

func eventsOfALife(t *testing.T, stores []link.Store) {
	base, began := head(t, stores[0]), time.Now()
	counted := sample(1, "minted1")
	counted.CodeKind = link.Counted
	mustCreate(t, stores[0], counted) // says nothing
	l := sample(2, "alias")
	l.CreatedBy, l.Title = "maker", "first"
	l = mustCreate(t, stores[0], l)
	edited, err := link.Update(t.Context(), stores[1], l.Key, "editor", func(l *link.Link) error {
		l.Title, l.Tags, l.Expires, l.Updated = "second", []string{"new"}, epoch.Add(time.Hour), epoch.Add(time.Second)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	entry := func(kind link.EventKind, v link.Version, who string, fields ...link.Was) link.Event {
		return link.Event{Change: link.Change{Key: l.Key, Version: v}, Kind: kind, ID: l.ID, Workspace: l.Workspace, Principal: who, Fields: fields}
	}
	was := func(name string, v any) link.Was {
		old, _ := json.Marshal(v)
		return link.Was{Name: name, Old: old}
	}
	updated := entry(link.WasUpdated, 2, "editor", was("expires_at", l.Expires), was("title", "first"), was("tags", l.Tags))
	wantEvents(t, stores[1], base, began, entry(link.WasCreated, 1, "maker"), updated)
	if _, err := link.Update(t.Context(), stores[0], l.Key, "owner", func(l *link.Link) error { *l = edited.Tombstone(epoch); return nil }); err != nil {
		t.Fatal(err)
	}
	updated.Fields = nil // gone with the link
	wantEvents(t, stores[1], base, began, entry(link.WasCreated, 1, "maker"), updated, entry(link.WasDeleted, 3, "owner"))
}

func eventsOfTheLastClick(t *testing.T, stores []link.Store) {
	spender, ok := stores[0].(link.Spender)
	if !ok {
		t.Skip("no link.Spender")
	}
	l := sample(3, "bound")
	l.MaxClicks, l.CodeKind = 3, link.Counted
	l = mustCreate(t, stores[0], l)
	base, began := head(t, stores[0]), time.Now()
	for _, n := range []uint64{2, 2, 1} { // the second takes the last one
		if _, err := spender.Spend(t.Context(), l.Key, n); err != nil {
			t.Fatal(err)
		}
	}
	first := link.Event{Change: link.Change{Key: l.Key, Version: 1}, Kind: link.WasExhausted, ID: l.ID, Workspace: l.Workspace}
	wantEvents(t, stores[1], base, began, first)
	more, err := link.Update(t.Context(), stores[1], l.Key, "", func(l *link.Link) error { l.MaxClicks = 4; return nil })
	if err != nil {
		t.Fatal(err)
	}
	at := head(t, stores[0])
	if _, err := spender.Spend(t.Context(), l.Key, 9); err != nil {
		t.Fatal(err)
	}
	again := first
	again.Version = more.Version
	wantEvents(t, stores[1], at, began, again)
}

func appended(t *testing.T, stores []link.Store) {
	base, began := head(t, stores[0]), time.Now()
	keys := make([]link.Key, link.MaxEventKeys)
	for i := range keys {
		keys[i] = link.Key{Domain: "b.example", Code: link.Code(fmt.Sprintf("code%d", i))}
	}
	e := link.Event{Kind: "expired", Workspace: "acme", Principal: "sweeper", Keys: keys}
	if err := stores[0].(link.EventLog).Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	l := mustCreate(t, stores[1], sample(4, "between"))
	created := link.Event{Change: link.Change{Key: l.Key, Version: 1}, Kind: link.WasCreated, ID: l.ID, Workspace: l.Workspace, Principal: l.CreatedBy}
	wantEvents(t, stores[1], base, began, e, created)
	if got := changesAfter(t, stores[1], base); len(got) != 2 || got[0].Key != (link.Key{}) || got[0].Version != 0 || got[1].Key != l.Key {
		t.Errorf("a cache reads %v", got)
	}
	for what, spoil := range map[string]func(*link.Event){
		"no kind":          func(e *link.Event) { e.Kind = "" },
		"a store's kind":   func(e *link.Event) { e.Kind = link.WasUpdated },
		"a long kind":      func(e *link.Event) { e.Kind = link.EventKind(strings.Repeat("x", link.MaxName+1)) },
		"no key":           func(e *link.Event) { e.Keys = nil },
		"too many keys":    func(e *link.Event) { e.Keys = append(slices.Clip(keys), l.Key) },
		"a bad key":        func(e *link.Event) { e.Keys = []link.Key{{Code: "a b"}} },
		"a link":           func(e *link.Event) { e.Key = l.Key },
		"fields":           func(e *link.Event) { e.Fields = []link.Was{{Name: "title"}} },
		"a time":           func(e *link.Event) { e.At = epoch },
		"a long workspace": func(e *link.Event) { e.Workspace = link.WorkspaceID(strings.Repeat("x", link.MaxName+1)) },
	} {
		wrong := e
		spoil(&wrong)
		want(t, what, stores[0].(link.EventLog).Append(t.Context(), wrong), link.ErrInvalid)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want(t, "after the end", stores[0].(link.EventLog).Append(ctx, e), context.Canceled)
	if got := len(changesAfter(t, stores[1], base)); got != 2 {
		t.Errorf("%d entries after refused ones", got)
	}
}

// expiryChanges: the links of a log that may expire at another time, by pages of any size, and none whose entries
// only look like it.
func expiryChanges(t *testing.T, stores []link.Store) {
	log, base := stores[1].(link.EventLog), head(t, stores[0])
	with, without := sample(10, "with"), sample(11, "without")
	with.Expires, without.Title = epoch.Add(time.Hour), `"name":"expires_at"`
	with, without = mustCreate(t, stores[0], with), mustCreate(t, stores[0], without)
	counted := sample(12, "minted2")
	counted.CodeKind, counted.Expires = link.Counted, epoch.Add(time.Hour)
	mustCreate(t, stores[0], counted) // is of the other log
	update := func(l link.Link, f func(l *link.Link)) {
		t.Helper()
		if _, err := link.Update(t.Context(), stores[0], l.Key, "", func(l *link.Link) error { f(l); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	update(without, func(l *link.Link) { l.Title, l.Tags = "status", []string{"expires_at"} })
	update(without, func(l *link.Link) { l.Status = link.Disabled })
	update(with, func(l *link.Link) { l.Expires = epoch.Add(2 * time.Hour) })
	update(with, func(l *link.Link) { l.Title = "expires_at" })
	update(without, func(l *link.Link) { l.Expires, l.Title = epoch, "both" })
	update(with, func(l *link.Link) { *l = l.Tombstone(epoch) }) // whose old values go: they do not say
	if err := stores[0].(link.EventLog).Append(t.Context(), link.Event{Kind: link.WasExpired, Keys: []link.Key{with.Key}}); err != nil {
		t.Fatal(err)
	}
	walk := func(n int) (keys []link.Key) {
		t.Helper()
		at := base
		for more := true; more; {
			page, next, further, err := log.ExpiryChanges(t.Context(), at, n)
			if err != nil || len(page) > n {
				t.Fatal(page, err)
			}
			keys, at, more = append(keys, page...), next, further
		}
		if end := head(t, stores[0]); at != end {
			t.Errorf("pages of %d end at %q, the log at %q", n, at, end)
		}
		return keys
	}
	expected := []link.Key{with.Key, without.Key, with.Key, with.Key, without.Key}
	if created, _, err := log.Events(t.Context(), base, 2); err != nil || len(created) != 2 {
		t.Fatal(created, err)
	} else if len(created[1].Fields) == 0 { // which a store need not say
		expected = slices.Insert(expected, 1, without.Key)
	}
	if got := walk(1); !slices.Equal(got, expected) {
		t.Errorf("one by one %v, want %v", got, expected)
	}
	for _, n := range []int{9, 10, 1000} { // all, and an empty page behind it or none
		if got := walk(n); !slices.Equal(got, expected[:2]) {
			t.Errorf("in pages of %d %v, want %v", n, got, expected[:2])
		}
	}
	for at, sentinel := range map[link.Position]error{"x": link.ErrInvalid, "1000000000": link.ErrConflict, "9223372036854775807": link.ErrConflict} {
		_, _, _, err := log.ExpiryChanges(t.Context(), at, 1000)
		want(t, "after "+string(at), err, sentinel)
	}
}

// endless reports whether fields say that a link was created without an end.
func endless(fields []link.Was) bool {
	return cmp.Equal(fields, link.CreatedFields(&link.Link{}))
}

// wantEvents compares all events after a position, but for sequences. They were appended since
// began, as far as clocks agree.
func wantEvents(t *testing.T, s link.Store, after link.Position, began time.Time, expected ...link.Event) {
	t.Helper()
	var got []link.Event
	for {
		page, next, err := s.(link.EventLog).Events(t.Context(), after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		if after = next; page[len(page)-1].Sequence.Position() != next {
			t.Fatalf("events up to %d end at %s", page[len(page)-1].Sequence, next)
		}
		for _, e := range page {
			if e.At.Before(began.Add(-time.Minute)) || e.At.After(time.Now().Add(time.Minute)) {
				t.Errorf("event %d was appended at %v", e.Sequence, e.At)
			}
		}
		got = append(got, page...)
	}
	for i := range got {
		if got[i].Kind == link.WasCreated && endless(got[i].Fields) { // which a store may say
			got[i].Fields = nil
		}
	}
	if diff := cmp.Diff(expected, got, cmpopts.IgnoreFields(link.Event{}, "Sequence", "At"), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("events (-want +got):\n%s", diff)
	}
}
