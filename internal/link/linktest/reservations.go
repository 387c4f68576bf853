package linktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"curt/internal/link"
)

// long is longer than any case lasts.
const long = 5 * time.Minute

// reservations proves a link.Reserver. No case asks how fast the machine is: what lapses is asked for until
// it has, and what must not have lapsed was reserved for longer than a case lasts.
func reservations(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"one workspace holds a key", holds},
		{"a reservation is no link", noLink},
		{"the holder creates", redeems},
		{"creates of others meet it", meets},
		{"a batch meets it", batchMeets},
		{"what was given away is never reserved", neverAgain},
		{"it lapses", lapses},
		{"it is given back", releases},
		{"a workspace holds a number of keys", limits},
		{"one of many callers holds it", oneHolder},
		{"creates and reservations at once", createsAndReservations},
		{"bad claims", badClaims},
		{"an ended context", endedReservations},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, h) })
	}
}

// reservers are handles as Reservers.
func reservers(t testing.TB, h Harness) (stores []link.Store, all []link.Reserver) {
	stores = handles(t, h)
	for _, s := range stores {
		r, ok := s.(link.Reserver)
		if !ok {
			t.Fatal("the store is no Reserver")
		}
		all = append(all, r)
	}
	return stores, all
}

func claim(k link.Key, w link.WorkspaceID, hold time.Duration) link.Claim {
	return link.Claim{Key: k, Workspace: w, For: hold, Most: 100}
}

func mustReserve(t testing.TB, s link.Reserver, k link.Key, w link.WorkspaceID, hold time.Duration) link.Reservation {
	t.Helper()
	r, found, err := s.Reserve(t.Context(), claim(k, w, hold))
	if err != nil || found || r.Key != k || r.Workspace != w || r.Left <= 0 || r.Left > hold || r.Until.IsZero() {
		t.Fatalf("reserve %s for %s: %+v, found %t, %v", k, w, r, found, err)
	}
	return r
}

// wantHeld checks that err says that holder holds k.
func wantHeld(t testing.TB, op string, err error, k link.Key, holder link.WorkspaceID) {
	t.Helper()
	held, ok := errors.AsType[*link.HeldError](err)
	if !ok || !errors.Is(err, link.ErrExists) {
		t.Errorf("%s: got %v, want that %s holds it", op, err, holder)
		return
	}
	if r := held.Reservation; r.Key != k || r.Workspace != holder || r.Left <= 0 || r.Left > long || r.Until.IsZero() {
		t.Errorf("%s: held by %+v, want %s", op, r, holder)
	}
}

func occupant(t testing.TB, s link.Reserver, k link.Key) link.Occupant {
	t.Helper()
	all, err := s.Occupants(t.Context(), []link.Key{k})
	if err != nil || len(all) != 1 {
		t.Fatalf("occupants of %s: %+v, %v", k, all, err)
	}
	return all[0]
}

// shapes are codes of every shape that a store may keep apart: one that a strategy may issue, one that none
// may, the shortest and the longest, and one on another domain.
func shapes() []link.Key {
	return []link.Key{
		{Code: "Minted7"},
		{Code: "an-alias_1"},
		{Code: "abc"},
		{Code: link.Code(strings.Repeat("a-z_", link.MaxCode/4))},
		{Domain: "go.example", Code: "Minted7"},
	}
}

func holds(t *testing.T, h Harness) {
	_, s := reservers(t, h)
	for _, k := range shapes() {
		first := mustReserve(t, s[0], k, "mine", long)
		_, _, err := s[1].Reserve(t.Context(), claim(k, "theirs", long))
		wantHeld(t, "reserve what is held", err, k, "mine")
		again, found, err := s[1].Reserve(t.Context(), claim(k, "mine", long))
		if err != nil || !found || !again.Until.Equal(first.Until) || again.Left > first.Left {
			t.Errorf("reserve it again: %+v, found %t, %v; want %+v", again, found, err, first)
		}
		if o := occupant(t, s[1], k); o.Linked || !o.Held() || o.Reservation.Workspace != "mine" || !o.Reservation.Until.Equal(first.Until) {
			t.Errorf("the occupant is %+v", o)
		}
	}
	free := []link.Key{{Code: "free"}, {Code: "minted7"}, {Domain: "go.example", Code: "an-alias_1"}, {Code: "with\x00nul"}}
	all, err := s[1].Occupants(t.Context(), append(free, shapes()[0]))
	if err != nil || len(all) != len(free)+1 || !all[len(free)].Held() {
		t.Fatalf("%+v, %v", all, err)
	}
	for i, k := range free {
		if all[i].Linked || all[i].Held() {
			t.Errorf("the occupant of %s is %+v", k, all[i])
		}
	}
}

// noLink looks for a reservation in everything that has links.
func noLink(t *testing.T, h Harness) {
	stores, s := reservers(t, h)
	start, err := stores[0].Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range shapes() {
		mustReserve(t, s[0], k, "mine", long)
	}
	for _, k := range shapes() {
		for i, store := range stores {
			_, err := store.Lookup(t.Context(), k)
			want(t, "look up a reservation", err, link.ErrNotFound)
			_, err = store.Get(t.Context(), k)
			want(t, "get a reservation", err, link.ErrNotFound)
			l := sample(i, k.Code)
			l.Key, l.Version = k, 0
			_, err = store.Replace(t.Context(), l, link.Edit{})
			want(t, "replace a reservation", err, link.ErrNotFound)
			if spender, ok := store.(link.Spender); ok {
				_, err = spender.Spend(t.Context(), k, 1)
				want(t, "spend of a reservation", err, link.ErrNotFound)
			}
		}
	}
	if links, err := link.GetMany(t.Context(), stores[1], shapes()); err != nil || links[0].Version != 0 || links[0].Key.Code != "" {
		t.Errorf("get many: %+v, %v", links, err)
	}
	for _, f := range []link.Filter{{}, {Oldest: true}, {Workspace: "mine"}, {Workspace: "mine", Oldest: true}, {Status: link.Deleted}} {
		page, err := stores[1].List(t.Context(), f, link.Page{Limit: link.MaxPage})
		if err != nil || len(page.Links) != 0 {
			t.Errorf("list %+v: %+v, %v", f, page, err)
		}
	}
	if keys, _, err := stores[1].Expired(t.Context(), "", time.Now().Add(24*time.Hour), 100); err != nil || len(keys) != 0 {
		t.Errorf("expired: %v, %v", keys, err)
	}
	if keys, _, err := stores[1].Chosen(t.Context(), "", 100); err != nil || len(keys) != 0 {
		t.Errorf("chosen: %v, %v", keys, err)
	}
	if changes, _, err := stores[1].Changes(t.Context(), start, 100); err != nil || len(changes) != 0 {
		t.Errorf("changes: %v, %v", changes, err)
	}
	if log, ok := stores[1].(link.CreateLog); ok {
		if links, _, err := log.Creates(t.Context(), "", 100); err != nil || len(links) != 0 {
			t.Errorf("creates: %v, %v", links, err)
		}
	}
}

// of returns a link of a workspace at a key.
func of(n int, k link.Key, w link.WorkspaceID) link.Link {
	l := sample(n, k.Code)
	l.Key, l.Workspace = k, w
	return l
}

func redeems(t *testing.T, h Harness) {
	stores, s := reservers(t, h)
	for i, k := range shapes() {
		mustReserve(t, s[0], k, "mine", long)
		start, err := stores[0].Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l := of(i, k, "mine")
		stored := mustCreate(t, stores[1], l)
		if stored.Version != 1 || stored.Key != k {
			t.Errorf("created %+v", stored)
		}
		again := mustCreate(t, stores[0], l) // a lost acknowledgement
		if again.ID != l.ID || again.Version != 1 {
			t.Errorf("created again %+v", again)
		}
		if got := mustGet(t, stores[0], k); got.ID != l.ID || got.Workspace != "mine" {
			t.Errorf("stored %+v", got)
		}
		if changes, _, err := stores[1].Changes(t.Context(), start, 100); err != nil || len(changes) != 1 || changes[0].Key != k || changes[0].Version != 1 {
			t.Errorf("changes %+v, %v", changes, err)
		}
		if o := occupant(t, s[0], k); !o.Linked || o.Held() {
			t.Errorf("the occupant is %+v", o)
		}
		want(t, "release what is a link", s[0].Release(t.Context(), k, "mine"), link.ErrNotFound)
		_, _, err = s[0].Reserve(t.Context(), claim(k, "mine", long))
		want(t, "reserve what is a link", err, link.ErrExists)
	}
}

func meets(t *testing.T, h Harness) {
	stores, s := reservers(t, h)
	for i, k := range shapes() {
		mustReserve(t, s[0], k, "mine", long)
		_, err := stores[1].Create(t.Context(), of(10+i, k, "theirs"))
		wantHeld(t, "create what another holds", err, k, "mine")
		if deduper, ok := stores[1].(link.Deduper); ok {
			_, _, err := deduper.FindOrCreate(t.Context(), of(20+i, k, "theirs"), epoch)
			wantHeld(t, "find or create what another holds", err, k, "mine")
		}
		if o := occupant(t, s[1], k); !o.Held() || o.Reservation.Workspace != "mine" {
			t.Errorf("the occupant is %+v", o)
		}
	}
	// A generated code gives way, also to its own workspace: it has another.
	for n, w := range []link.WorkspaceID{"mine", "theirs"} {
		l := of(30+n, link.Key{Code: "Minted7"}, w)
		l.CodeKind = Kind(true)
		_, err := stores[1].Create(t.Context(), l)
		want(t, "create a generated code that is reserved", err, link.ErrExists)
	}
	if deduper, ok := stores[0].(link.Deduper); ok {
		l := of(40, shapes()[1], "mine")
		stored, found, err := deduper.FindOrCreate(t.Context(), l, epoch)
		if err != nil || found || stored.ID != l.ID {
			t.Errorf("find or create by the holder: %+v, %t, %v", stored, found, err)
		}
	}
}

func batchMeets(t *testing.T, h Harness) {
	if !h.Features.Batcher {
		return
	}
	stores, s := reservers(t, h)
	mine, theirs, free := link.Key{Code: "mine"}, link.Key{Code: "theirs"}, link.Key{Code: "nobodys"}
	mustReserve(t, s[0], mine, "mine", long)
	mustReserve(t, s[0], theirs, "theirs", long)
	entries := []link.Creation{
		{Link: of(1, theirs, "mine")}, {Link: of(2, mine, "mine")}, {Link: of(3, free, "mine")}, {Link: of(4, mine, "mine")}, {Link: of(5, theirs, "theirs")},
	}
	results, err := stores[1].(link.Batcher).CreateMany(t.Context(), epoch, entries)
	if err != nil || len(results) != len(entries) {
		t.Fatalf("%+v, %v", results, err)
	}
	wantHeld(t, "the first entry", results[0].Err, theirs, "theirs")
	want(t, "the fourth entry", results[3].Err, link.ErrExists)
	for _, i := range []int{1, 2, 4} {
		if r := results[i]; r.Err != nil || r.Link.ID != entries[i].Link.ID {
			t.Errorf("entry %d: %+v", i, r)
		}
	}
	again, err := stores[0].(link.Batcher).CreateMany(t.Context(), epoch, entries)
	if err != nil || again[1].Err != nil || again[1].Link.ID != entries[1].Link.ID {
		t.Errorf("the same batch again: %+v, %v", again, err)
	}
}

func neverAgain(t *testing.T, h Harness) {
	stores, s := reservers(t, h)
	for i, k := range shapes() {
		l := mustCreate(t, stores[0], of(i, k, "mine"))
		for _, w := range []link.WorkspaceID{"mine", "theirs"} {
			_, _, err := s[1].Reserve(t.Context(), claim(k, w, long))
			want(t, "reserve a link", err, link.ErrExists)
		}
		mustReplace(t, stores[0], l.Tombstone(epoch))
		for _, w := range []link.WorkspaceID{"mine", "theirs"} {
			_, _, err := s[1].Reserve(t.Context(), claim(k, w, long))
			want(t, "reserve a tombstone", err, link.ErrExists)
			if _, held := errors.AsType[*link.HeldError](err); held {
				t.Errorf("a tombstone is held: %v", err)
			}
		}
		if o := occupant(t, s[1], k); !o.Linked || o.Held() {
			t.Errorf("the occupant of a tombstone is %+v", o)
		}
	}
}

// awaitLapse asks f, about a key that is held until some time soon, until it is answered otherwise.
func awaitLapse(t testing.TB, f func() error) {
	t.Helper()
	for t.Context().Err() == nil {
		err := f()
		if _, held := errors.AsType[*link.HeldError](err); held {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

func lapses(t *testing.T, h Harness) {
	const hold = 150 * time.Millisecond
	stores, s := reservers(t, h)
	reserved, created, swept := link.Key{Code: "reserved"}, link.Key{Code: "Created"}, link.Key{Code: "swept"}
	began := time.Now()
	for _, k := range []link.Key{reserved, created, swept} {
		mustReserve(t, s[0], k, "mine", hold)
	}
	kept := link.Key{Code: "kept"}
	mustReserve(t, s[0], kept, "mine", long)
	awaitLapse(t, func() error {
		_, _, err := s[1].Reserve(t.Context(), claim(reserved, "theirs", long))
		return err
	})
	// The stores of tests share the clock of this machine, of which they keep milliseconds.
	if after := time.Since(began); after < hold-time.Millisecond {
		t.Errorf("reserved by another after %s, within %s", after, hold)
	}
	awaitLapse(t, func() error {
		_, err := stores[1].Create(t.Context(), of(1, created, "theirs"))
		return err
	})
	awaitLapse(t, func() error {
		if o := occupant(t, s[1], swept); o.Held() {
			return &link.HeldError{Reservation: o.Reservation}
		}
		return nil
	})
	want(t, "release what has lapsed", s[0].Release(t.Context(), swept, "mine"), link.ErrNotFound)
	if n, err := s[1].RemoveLapsed(t.Context(), 100); err != nil || n != 1 {
		t.Errorf("removed %d, %v, want 1", n, err)
	}
	if n, err := s[0].RemoveLapsed(t.Context(), 100); err != nil || n != 0 {
		t.Errorf("removed %d more, %v", n, err)
	}
	for k, w := range map[link.Key]link.WorkspaceID{reserved: "theirs", kept: "mine"} {
		if o := occupant(t, s[0], k); o.Reservation.Workspace != w {
			t.Errorf("the occupant of %s is %+v, want %s", k, o, w)
		}
	}
	mustReserve(t, s[0], swept, "theirs", long)
	if n, err := s[0].RemoveLapsed(t.Context(), 0); err != nil || n != 0 {
		t.Errorf("removed %d of none, %v", n, err)
	}
}

func releases(t *testing.T, h Harness) {
	stores, s := reservers(t, h)
	for i, k := range shapes() {
		want(t, "release what is free", s[0].Release(t.Context(), k, "mine"), link.ErrNotFound)
		mustReserve(t, s[0], k, "mine", long)
		want(t, "release what another holds", s[1].Release(t.Context(), k, "theirs"), link.ErrNotFound)
		if err := s[1].Release(t.Context(), k, "mine"); err != nil {
			t.Errorf("release: %v", err)
		}
		want(t, "release it twice", s[0].Release(t.Context(), k, "mine"), link.ErrNotFound)
		mustReserve(t, s[0], k, "theirs", long)
		if err := s[1].Release(t.Context(), k, ""); err != nil {
			t.Errorf("release whoever holds it: %v", err)
		}
		mustCreate(t, stores[0], of(i, k, "mine"))
	}
	want(t, "release what no link could have", s[0].Release(t.Context(), link.Key{Code: "with\x00nul"}, "mine"), link.ErrNotFound)
}

func limits(t *testing.T, h Harness) {
	stores, s := reservers(t, h)
	const most = 3
	var wg sync.WaitGroup
	var won, refused atomic.Int64
	for i := range 4 * most {
		wg.Go(func() {
			c := claim(link.Key{Code: link.Code(fmt.Sprintf("many-%d", i))}, "mine", long)
			c.Most = most
			switch _, _, err := s[i%2].Reserve(t.Context(), c); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, link.ErrTooManyReservations):
				refused.Add(1)
			default:
				t.Errorf("reserve: %v", err)
			}
		})
	}
	wg.Wait()
	if won.Load() != most || refused.Load() != 3*most {
		t.Errorf("%d won and %d were refused, want %d and %d", won.Load(), refused.Load(), most, 3*most)
	}
	mustReserve(t, s[0], link.Key{Code: "theirs"}, "theirs", long)
	var own []link.Key
	for i := range 4 * most {
		k := link.Key{Code: link.Code(fmt.Sprintf("many-%d", i))}
		if occupant := occupant(t, s[0], k); occupant.Held() {
			own = append(own, k)
		}
	}
	if len(own) < 2 {
		t.Fatalf("holds %v", own)
	}
	c := claim(own[0], "mine", long)
	c.Most = most
	if _, found, err := s[1].Reserve(t.Context(), c); err != nil || !found {
		t.Errorf("reserve again what is held, at the limit: found %t, %v", found, err)
	}
	// Both ways to end a reservation make room for another.
	if err := s[0].Release(t.Context(), own[0], "mine"); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, stores[1], of(1, own[1], "mine"))
	for _, code := range []link.Code{"one-more", "two-more", "too-much"} {
		c.Key.Code = code
		_, _, err := s[0].Reserve(t.Context(), c)
		if code == "too-much" {
			want(t, "reserve above the limit", err, link.ErrTooManyReservations)
		} else if err != nil {
			t.Errorf("reserve %s: %v", code, err)
		}
	}
}

// oneHolder lets many workspaces over two handles reserve one key.
func oneHolder(t *testing.T, h Harness) {
	_, s := reservers(t, h)
	for _, k := range shapes()[:2] {
		const callers = 16
		var won atomic.Int64
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				_, _, err := s[i%2].Reserve(t.Context(), claim(k, link.WorkspaceID(fmt.Sprintf("w%d", i)), long))
				if err == nil {
					won.Add(1)
				} else if _, held := errors.AsType[*link.HeldError](err); !held {
					t.Errorf("reserve: %v", err)
				}
			})
		}
		if wg.Wait(); won.Load() != 1 {
			t.Errorf("%d of %d hold %s", won.Load(), callers, k)
		}
	}
}

// createsAndReservations lets callers reserve and create one key at once, over two handles, chosen and
// generated: either one link is made and nobody holds the key, or one workspace holds it and nobody else has a link.
func createsAndReservations(t *testing.T, h Harness) {
	stores, s := reservers(t, h)
	for round := range 20 {
		k := link.Key{Code: link.Code(fmt.Sprintf("Round%02d", round))}
		var held, created atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				w := link.WorkspaceID(fmt.Sprintf("w%d", i))
				var err error
				if i%2 == 0 {
					if _, _, err = s[i/2%2].Reserve(t.Context(), claim(k, w, long)); err == nil {
						held.Add(1)
					}
				} else {
					l := of(round*8+i, k, w)
					l.CodeKind = Kind(i%4 == 1)
					if _, err = stores[i/2%2].Create(t.Context(), l); err == nil {
						created.Add(1)
					}
				}
				if err != nil && !errors.Is(err, link.ErrExists) {
					t.Errorf("%d: %v", i, err)
				}
			})
		}
		wg.Wait()
		o := occupant(t, s[0], k)
		if held.Load()+created.Load() != 1 || o.Linked != (created.Load() == 1) || o.Held() != (held.Load() == 1) {
			t.Errorf("%s: %d hold it, %d created it, and %+v has it", k, held.Load(), created.Load(), o)
		}
	}
}

func badClaims(t *testing.T, h Harness) {
	_, s := reservers(t, h)
	good := claim(link.Key{Code: "good"}, "mine", long)
	for name, change := range map[string]func(*link.Claim){
		"no code":      func(c *link.Claim) { c.Key.Code = "" },
		"a bad code":   func(c *link.Claim) { c.Key.Code = "no/code" },
		"a NUL":        func(c *link.Claim) { c.Key.Code = "a\x00b" },
		"a bad domain": func(c *link.Claim) { c.Key.Domain = "UPPER.example" },
		"no holder":    func(c *link.Claim) { c.Workspace = "" },
		"no time":      func(c *link.Claim) { c.For = 0 },
		"none at all":  func(c *link.Claim) { c.Most = 0 },
	} {
		bad := good
		change(&bad)
		_, _, err := s[0].Reserve(t.Context(), bad)
		want(t, name, err, link.ErrInvalid)
	}
	_, err := s[0].Occupants(t.Context(), make([]link.Key, link.MaxPage+1))
	want(t, "occupants of too many keys", err, link.ErrInvalid)
	if all, err := s[0].Occupants(t.Context(), nil); err != nil || len(all) != 0 {
		t.Errorf("occupants of no key: %+v, %v", all, err)
	}
}

func endedReservations(t *testing.T, h Harness) {
	_, s := reservers(t, h)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the caller left")
	cancel(cause)
	k := link.Key{Code: "abc"}
	_, _, err := s[0].Reserve(ctx, claim(k, "mine", long))
	want(t, "reserve", err, cause)
	want(t, "release", s[0].Release(ctx, k, "mine"), cause)
	_, err = s[0].Occupants(ctx, []link.Key{k})
	want(t, "occupants", err, cause)
	if o := occupant(t, s[1], k); o.Held() {
		t.Errorf("held by %+v", o.Reservation)
	}
}
