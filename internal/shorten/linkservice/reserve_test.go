package linkservice_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/abuse"
	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/moderation"
	"curt/internal/ratelimit"
	"curt/internal/shorten"
	"curt/internal/shorten/create"
	"curt/internal/shorten/judge"
	"curt/internal/shorten/linkservice"
	"curt/internal/shorten/reserve"
)

// asked is a store that counts what is asked of it about aliases.
type asked struct {
	*linktest.Memory

	gets, occupants, reserves, creates atomic.Int64
	hold                               chan struct{} // Occupants waits until it is closed; nil = for nothing
	holdCreates                        chan struct{} // Create waits in the same way
}

func (a *asked) Create(ctx context.Context, l link.Link) (link.Link, error) {
	a.creates.Add(1)
	if a.holdCreates != nil {
		<-a.holdCreates
	}
	return a.Memory.Create(ctx, l)
}

func (a *asked) CreateMany(ctx context.Context, now time.Time, entries []link.Creation) ([]link.Result, error) {
	a.creates.Add(1)
	return a.Memory.CreateMany(ctx, now, entries)
}

func (a *asked) Get(ctx context.Context, k link.Key) (link.Link, error) {
	a.gets.Add(1)
	return a.Memory.Get(ctx, k)
}

func (a *asked) Occupants(ctx context.Context, keys []link.Key) ([]link.Occupant, error) {
	a.occupants.Add(1)
	if a.hold != nil {
		select {
		case <-a.hold:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return a.Memory.Occupants(ctx, keys)
}

func (a *asked) Reserve(ctx context.Context, c link.Claim) (link.Reservation, bool, error) {
	a.reserves.Add(1)
	return a.Memory.Reserve(ctx, c)
}

func (a *asked) reads() int64 { return a.gets.Load() + a.occupants.Load() }

// over returns a service over a store that counts.
func over(t *testing.T, change ...func(*linkservice.Config)) (bench, *asked) {
	t.Helper()
	store := &asked{Memory: linktest.NewMemory()}
	b := newBench(t, append(change, func(cfg *linkservice.Config) { cfg.Store = store })...)
	b.store = store.Memory
	return b, store
}

func writer(w link.WorkspaceID) auth.Principal { return member(w, auth.LinksWrite) }

func alias(name string) shorten.Request {
	req := to("https://example.com/" + name)
	req.Alias = shorten.Value(name)
	return req
}

// hold reserves an alias.
func (b bench) hold(t *testing.T, now time.Time, who auth.Principal, name string) link.Reservation {
	t.Helper()
	r, found, _, err := b.Reserve(t.Context(), now, who, "", name)
	if err != nil || found || r.Workspace != who.Workspace || string(r.Key.Code) != name {
		t.Fatalf("reserve %s: %+v, %t, %v", name, r, found, err)
	}
	return r
}

func wantHeld(t *testing.T, what string, err error, holder link.WorkspaceID) {
	t.Helper()
	held, ok := errors.AsType[*link.HeldError](err)
	if !ok || held.Reservation.Workspace != holder || held.Reservation.Left <= 0 || held.Reservation.Left > reserve.Hold {
		t.Errorf("%s: got %v, want that %s holds it", what, err, holder)
	}
}

func TestOnlyTheHolderCreates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := over(t)
		mine, theirs := writer("acme"), writer("rival")
		r := b.hold(t, time.Now(), mine, "sale")
		if r.Left != reserve.Hold || !r.Until.Equal(time.Now().Add(reserve.Hold)) {
			t.Errorf("held for %s, until %s", r.Left, r.Until)
		}
		req := alias("sale")
		_, err := b.Create(t.Context(), time.Now(), by(theirs), &req)
		wantHeld(t, "create by another", err, "acme")
		req = alias("sale")
		_, err = b.Create(t.Context(), time.Now(), by(auth.Principal{Addr: addr("203.0.113.7")}), &req)
		if err == nil {
			t.Error("somebody without a key created it")
		}
		req = alias("sale")
		req.Dedupe = shorten.Value(true)
		_, err = b.Create(t.Context(), time.Now(), by(theirs), &req)
		wantHeld(t, "create by another who would take a link that is there", err, "acme")

		rows := []create.Row{{Request: alias("sale")}, {Request: alias("other")}}
		if _, err := b.CreateMany(t.Context(), time.Now(), by(theirs), rows); err != nil {
			t.Fatal(err)
		}
		wantHeld(t, "a row of another", rows[0].Err, "acme")
		if rows[1].Err != nil {
			t.Error(rows[1].Err)
		}
		time.Sleep(time.Minute)
		if again, found, _, err := b.Reserve(t.Context(), time.Now(), mine, "", "sale"); err != nil || !found || !again.Until.Equal(r.Until) {
			t.Errorf("reserve again: %+v, %t, %v", again, found, err)
		}
		_, _, _, err = b.Reserve(t.Context(), time.Now(), theirs, "", "sale")
		wantHeld(t, "reserve by another", err, "acme")

		// Any key of the workspace may create, also when that which reserved is revoked by now.
		colleague := auth.Principal{KeyID: "another", Workspace: "acme", Scopes: []auth.Scope{auth.LinksWrite}}
		req = alias("sale")
		l, err := b.created(t.Context(), time.Now(), by(colleague), &req)
		if err != nil || l.Workspace != "acme" || l.CreatedBy != "another" {
			t.Fatalf("%+v, %v", l, err)
		}
		wantError(t, "reserve what is a link", b.Free(t.Context(), time.Now(), theirs, "", "sale"), shorten.ErrTaken)
		time.Sleep(time.Hour)
		wantError(t, "a link does not lapse", b.Free(t.Context(), time.Now(), mine, "", "sale"), shorten.ErrTaken)
	})
}

func TestAReservationLapses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := over(t)
		mine, theirs := writer("acme"), writer("rival")
		b.hold(t, time.Now(), mine, "sale")
		wantHeld(t, "at once", b.Free(t.Context(), time.Now(), theirs, "", "sale"), "acme")
		time.Sleep(reserve.Hold - time.Millisecond)
		wantHeld(t, "before its end", b.Free(t.Context(), time.Now(), theirs, "", "sale"), "acme")
		time.Sleep(time.Millisecond) // what was remembered a moment ago is not remembered beyond the end
		if err := b.Free(t.Context(), time.Now(), theirs, "", "sale"); err != nil {
			t.Error(err)
		}
		b.hold(t, time.Now(), theirs, "sale")
		req := alias("sale")
		_, err := b.Create(t.Context(), time.Now(), by(mine), &req)
		wantHeld(t, "create by who held it", err, "rival")
		if n, err := store.RemoveLapsed(t.Context(), 10); err != nil || n != 0 {
			t.Errorf("removed %d, %v", n, err)
		}
	})
}

// TestACrowdCostsOneRead: whoever asks for one popular alias, and however, a server reads once a minute.
func TestACrowdCostsOneRead(t *testing.T) {
	const callers = 1000
	for name, prepare := range map[string]func(t *testing.T, b bench){
		"a link":        func(t *testing.T, b bench) { b.mustCreate(t, writer("acme"), alias("sale")) },
		"a tombstone":   func(t *testing.T, b bench) { tombstone(t, b) },
		"a reservation": func(t *testing.T, b bench) { reserveElsewhere(t, b) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plain, _ := over(t)
				prepare(t, plain)
				store := &asked{Memory: plain.store, hold: make(chan struct{})}
				b := newBench(t, func(cfg *linkservice.Config) { cfg.Store = store }) // a server that has not heard of it
				for minute := range 3 {
					var refused atomic.Int64
					var wg sync.WaitGroup
					for i := range callers {
						wg.Go(func() {
							who := writer(link.WorkspaceID(fmt.Sprintf("w%d", i)))
							var err error
							if i%2 == 0 {
								err = b.Free(t.Context(), time.Now(), who, "", "sale")
							} else {
								_, _, _, err = b.Reserve(t.Context(), time.Now(), who, "", "sale")
							}
							if errors.Is(err, link.ErrExists) {
								refused.Add(1)
							} else {
								t.Errorf("caller %d: %v", i, err)
							}
						})
					}
					if minute == 0 {
						synctest.Wait() // all of them ask at once
						close(store.hold)
					}
					wg.Wait()
					for range callers {
						_ = b.Free(t.Context(), time.Now(), writer("late"), "", "sale")
					}
					if reads, writes := store.reads(), store.reserves.Load(); refused.Load() != callers || reads != int64(minute+1) || writes != 0 {
						t.Errorf("minute %d: %d of %d refused, %d reads and %d writes in all", minute, refused.Load(), callers, reads, writes)
					}
					time.Sleep(time.Minute)
				}
			})
		})
	}
}

// TestACrowdOfCreatesAsksOnce: creates of an alias that is taken or held are answered from what the first one learnt: those that
// come at the same time, those that follow, rows of a list, and those with an idempotency key.
func TestACrowdOfCreatesAsksOnce(t *testing.T) {
	const callers = 1000
	for name, prepare := range map[string]func(t *testing.T, b bench){
		"a link":        func(t *testing.T, b bench) { b.mustCreate(t, writer("acme"), alias("sale")) },
		"a tombstone":   func(t *testing.T, b bench) { tombstone(t, b) },
		"a reservation": func(t *testing.T, b bench) { reserveElsewhere(t, b) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				plain, _ := over(t)
				prepare(t, plain)
				store := &asked{Memory: plain.store, holdCreates: make(chan struct{})}
				b := newBench(t, func(cfg *linkservice.Config) { cfg.Store = store })
				for minute := range 3 {
					var wg sync.WaitGroup
					for i := range callers {
						wg.Go(func() {
							cause := by(writer("rival"))
							if i%2 == 0 {
								cause = by(writer(link.WorkspaceID(fmt.Sprintf("w%d", i))))
							} else if i%5 == 0 {
								cause = under(fmt.Sprintf("key-%d-%d", minute, i), writer("rival"))
							}
							req := alias("sale")
							if _, err := b.Create(t.Context(), time.Now(), cause, &req); !errors.Is(err, link.ErrExists) {
								t.Errorf("caller %d: %v", i, err)
							}
						})
					}
					if minute == 0 {
						synctest.Wait()
						close(store.holdCreates)
					}
					wg.Wait()
					rows := []create.Row{{Request: alias("sale")}}
					if _, err := b.CreateMany(t.Context(), time.Now(), by(writer("late")), rows); err != nil || !errors.Is(rows[0].Err, link.ErrExists) {
						t.Errorf("a row: %v, %v", err, rows[0].Err)
					}
					_ = b.Free(t.Context(), time.Now(), writer("late"), "", "sale") // which reads suggestions
					if reads, creates := store.reads(), store.creates.Load(); reads > int64(minute+1) || creates != int64(minute+1) {
						t.Errorf("minute %d: %d reads and %d creates in all", minute, reads, creates)
					}
					time.Sleep(time.Minute)
				}
			})
		})
	}
}

// What one server remembers of a reservation refuses nobody for whom the store would decide otherwise by now: the reservation was
// released, has lapsed, or is held by the caller, who made it at another server.
func TestWhatIsRememberedRefusesNoHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := over(t)
		other := newBench(t, func(cfg *linkservice.Config) { cfg.Store = store })
		mine, theirs := writer("acme"), writer("rival")

		b.hold(t, time.Now(), mine, "released")
		wantHeld(t, "held", b.Free(t.Context(), time.Now(), theirs, "", "released"), "acme")
		if err := b.Release(t.Context(), mine, "", "released"); err != nil {
			t.Fatal(err)
		}
		b.mustCreateAt(t, theirs, alias("released"))

		b.hold(t, time.Now(), mine, "lapsed")
		req := alias("lapsed")
		_, err := b.Create(t.Context(), time.Now(), by(theirs), &req)
		wantHeld(t, "create", err, "acme")
		time.Sleep(reserve.Hold)
		b.mustCreateAt(t, theirs, alias("lapsed"))

		b.hold(t, time.Now(), mine, "changed")
		wantHeld(t, "held", b.Free(t.Context(), time.Now(), theirs, "", "changed"), "acme")
		time.Sleep(2 * time.Second)
		if err := other.Release(t.Context(), mine, "", "changed"); err != nil {
			t.Fatal(err)
		}
		other.hold(t, time.Now(), theirs, "changed")
		b.mustCreateAt(t, theirs, alias("changed")) // its holder

		b.hold(t, time.Now(), mine, "mine")
		b.mustCreateAt(t, mine, alias("mine"))
	})
}

// mustCreateAt is mustCreate now, and not at noon.
func (b bench) mustCreateAt(t *testing.T, who auth.Principal, req shorten.Request) {
	t.Helper()
	if _, err := b.created(t.Context(), time.Now(), by(who), &req); err != nil {
		t.Errorf("create %s: %v", req.Alias.Value, err)
	}
}

func tombstone(t *testing.T, b bench) {
	t.Helper()
	b.mustCreate(t, writer("acme"), alias("sale"))
	if err := b.Delete(t.Context(), time.Now(), by(writer("acme")), link.Key{Code: "sale"}, shorten.Match{}); err != nil {
		t.Fatal(err)
	}
}

func reserveElsewhere(t *testing.T, b bench) {
	t.Helper()
	if _, _, err := b.store.Reserve(t.Context(), link.Claim{Key: link.Key{Code: "sale"}, Workspace: "acme", For: reserve.Hold, Most: 1}); err != nil {
		t.Fatal(err)
	}
}

// TestACrowdForAFreeAlias: one of a thousand holds it, with one write.
func TestACrowdForAFreeAlias(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := over(t)
		store.hold = make(chan struct{})
		var won, held atomic.Int64
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				_, _, _, err := b.Reserve(t.Context(), time.Now(), writer(link.WorkspaceID(fmt.Sprintf("w%d", i))), "", "sale")
				switch _, refused := errors.AsType[*link.HeldError](err); {
				case err == nil:
					won.Add(1)
				case refused:
					held.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(store.hold)
		wg.Wait()
		if won.Load() != 1 || held.Load() != 999 || store.reads() != 1 || store.reserves.Load() != 1 {
			t.Errorf("%d won, %d were refused, with %d reads and %d writes", won.Load(), held.Load(), store.reads(), store.reserves.Load())
		}
	})
}

// A caller who leaves while others wait for its read takes their answer from none of them.
func TestWhoLeavesKeepsNobodyFromAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := over(t)
		store.hold = make(chan struct{})
		ctx, leave := context.WithCancel(t.Context())
		errs := make(chan error, 3)
		go func() { errs <- b.Free(ctx, time.Now(), writer("first"), "", "sale") }()
		synctest.Wait()
		for range 2 {
			go func() { errs <- b.Free(t.Context(), time.Now(), writer("other"), "", "sale") }()
		}
		synctest.Wait()
		leave()
		wantError(t, "who left", <-errs, context.Canceled)
		close(store.hold)
		for range 2 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// What one server remembers ends with the reservation that it released, or whose link it created.
func TestWhatIsRememberedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := over(t)
		mine, theirs := writer("acme"), writer("rival")
		b.hold(t, time.Now(), mine, "sale")
		wantHeld(t, "held", b.Free(t.Context(), time.Now(), theirs, "", "sale"), "acme")
		wantError(t, "release by another", b.Release(t.Context(), theirs, "", "sale"), shorten.ErrNotHeld)
		wantHeld(t, "still held", b.Free(t.Context(), time.Now(), theirs, "", "sale"), "acme")
		if err := b.Release(t.Context(), mine, "", "sale"); err != nil {
			t.Error(err)
		}
		if err := b.Free(t.Context(), time.Now(), theirs, "", "sale"); err != nil {
			t.Errorf("free at once: %v", err)
		}
		b.hold(t, time.Now(), theirs, "sale")
		if err := b.Release(t.Context(), admin(), "", "sale"); err != nil {
			t.Errorf("release by an admin: %v", err)
		}
		wantError(t, "release of nothing", b.Release(t.Context(), admin(), "", "sale"), shorten.ErrNotHeld)

		b.hold(t, time.Now(), mine, "sale")
		b.mustCreate(t, mine, alias("sale"))
		wantError(t, "a link at once", b.Free(t.Context(), time.Now(), theirs, "", "sale"), shorten.ErrTaken)
	})
}

// A clock that was set back makes nothing remembered for longer than a minute.
func TestAClockThatIsSetBack(t *testing.T) {
	b, store := over(t)
	b.mustCreate(t, writer("acme"), alias("sale"))
	for _, now := range []time.Time{noon(), noon().Add(-time.Hour), noon().Add(-time.Hour + 59*time.Second), noon().Add(-time.Hour + time.Minute)} {
		wantError(t, now.String(), b.Free(t.Context(), now, writer("rival"), "", "sale"), shorten.ErrTaken)
	}
	if n := store.occupants.Load(); n != 3 {
		t.Errorf("read %d times, want 3", n)
	}
}

func TestWhoMayReserve(t *testing.T) {
	b, _ := over(t)
	_, _, _, err := b.Reserve(t.Context(), noon(), auth.Principal{Addr: addr("203.0.113.7"), Scopes: []auth.Scope{auth.LinksWrite}}, "", "sale")
	wantError(t, "without a key", err, auth.ErrUnauthenticated)
	_, _, _, err = b.Reserve(t.Context(), noon(), member("acme", auth.LinksRead), "", "sale")
	wantError(t, "without the scope", err, auth.ErrForbidden)
	wantError(t, "release without the scope", b.Release(t.Context(), member("acme", auth.LinksRead), "", "sale"), auth.ErrForbidden)
	for _, bad := range []string{"ab", "no/alias", "a\x00bc", strings.Repeat("a", 65)} {
		_, _, _, err = b.Reserve(t.Context(), noon(), writer("acme"), "", bad)
		wantError(t, bad, err, link.ErrInvalid)
		wantError(t, "release "+bad, b.Release(t.Context(), writer("acme"), "", bad), shorten.ErrNotHeld)
	}
	_, _, _, err = b.Reserve(t.Context(), noon(), writer("acme"), "", "Admin")
	wantError(t, "a word of the service", err, shorten.ErrReserved)

	off, _ := over(t, func(cfg *linkservice.Config) { cfg.Held = -1 })
	_, _, _, err = off.Reserve(t.Context(), noon(), writer("acme"), "", "sale")
	wantError(t, "where nothing is reserved", err, shorten.ErrNoReservations)
	wantError(t, "release of nothing there", off.Release(t.Context(), writer("acme"), "", "sale"), shorten.ErrNotHeld)
	if _, _, err := off.store.Reserve(t.Context(), link.Claim{Key: link.Key{Code: "sale"}, Workspace: "acme", For: time.Hour, Most: 1}); err != nil {
		t.Fatal(err)
	}
	if err := off.Release(t.Context(), writer("acme"), "", "sale"); err != nil {
		t.Errorf("release of what was reserved before: %v", err)
	}
	plain := newBench(t, func(cfg *linkservice.Config) {
		cfg.Store = linktest.WithFaults(cfg.Store, func(linktest.Op, link.Key) (bool, error) { return true, nil })
	})
	_, _, _, err = plain.Reserve(t.Context(), noon(), writer("acme"), "", "sale")
	wantError(t, "over a store that reserves nothing", err, shorten.ErrNoReservations)
	if found, err := plain.Check(t.Context(), noon(), writer("acme"), "", "sale"); err != nil || found.Err != nil {
		t.Errorf("check over such a store: %+v, %v", found, err)
	}
}

// The policy of aliases holds for reservations, and for suggestions, as for creates.
func TestThePolicyOfAliasesHolds(t *testing.T) {
	b, store := over(t, wording(t, "press\nteam-*", "~paypal\nrude*"), func(c *linkservice.Config) {
		c.Aliases = shorten.AliasPolicy{Max: 8}
	})
	for alias, want := range map[string]error{
		"PRESS": shorten.ErrReserved, "team-x": shorten.ErrReserved, "PayPaI": shorten.ErrRefused, "pay-pal": shorten.ErrRefused, "Rude-1": shorten.ErrRefused,
		"ninechars": link.ErrInvalid, "pressed": nil,
	} {
		_, _, _, err := b.Reserve(t.Context(), noon(), writer("acme"), "", alias)
		wantError(t, alias, err, want)
	}
	if n := store.reserves.Load(); n != 1 {
		t.Errorf("%d were reserved", n)
	}
	if found, err := b.Check(t.Context(), noon(), writer("rival"), "", "pressed"); err != nil || len(found.Suggestions) == 0 {
		t.Errorf("%+v, %v", found, err)
	} else {
		for _, code := range found.Suggestions {
			if len(code) > 8 {
				t.Errorf("suggested %s", code)
			}
		}
	}
}

func TestLimitsOfReservations(t *testing.T) {
	b, _ := over(t, func(cfg *linkservice.Config) {
		cfg.Held = 2
		cfg.Plans = create.Plans{auth.PlanDefault: {ratelimit.Per(4, time.Minute)}}
	})
	mine := writer("acme")
	for i, want := range []error{nil, nil, link.ErrTooManyReservations} {
		_, _, v, err := b.Reserve(t.Context(), noon(), mine, "", fmt.Sprintf("sale-%d", i))
		if !errors.Is(err, want) || v == nil || v.Remaining != 3-i {
			t.Errorf("%d: %v, %v, want %v", i, v, err, want)
		}
	}
	if err := b.Release(t.Context(), mine, "", "sale-0"); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := b.Reserve(t.Context(), noon(), mine, "", "sale-2"); err != nil {
		t.Error(err)
	}
	_, _, _, err := b.Reserve(t.Context(), noon(), mine, "", "sale-3")
	if _, limited := errors.AsType[*shorten.LimitedError](err); !limited {
		t.Errorf("the fifth in a minute: %v", err)
	}
	for i := range 4 { // reservations take nothing of what may be created
		b.mustCreate(t, mine, alias(fmt.Sprintf("created-%d", i)))
	}
}

// barring is a Moderator who has banned everybody.
type barring struct{ judge.Moderator }

func (barring) CheckBan(*abuse.Facts) (ban moderation.Entry, barred bool) {
	return moderation.Entry{Entity: moderation.Entity{Kind: moderation.KindWorkspace}}, true
}

// A caller who is banned holds nothing.
func TestABannedCallerReservesNothing(t *testing.T) {
	b, store := over(t, func(cfg *linkservice.Config) { cfg.Moderator = barring{} })
	_, _, _, err := b.Reserve(t.Context(), noon(), writer("acme"), "", "sale")
	wantError(t, "reserve", err, shorten.ErrBanned)
	if store.reads()+store.reserves.Load() != 0 {
		t.Error("the store was asked")
	}
}

// A create under an idempotency key that met a reservation is created by its retry once that has lapsed.
func TestARetryAfterTheReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := over(t)
		b.hold(t, time.Now(), writer("acme"), "sale")
		req := alias("sale")
		_, err := b.Create(t.Context(), time.Now(), under("k", writer("rival")), &req)
		wantHeld(t, "create", err, "acme")
		time.Sleep(reserve.Hold)
		req = alias("sale")
		l, err := b.created(t.Context(), time.Now(), under("k", writer("rival")), &req)
		if err != nil || l.Key.Code != "sale" || l.Workspace != "rival" {
			t.Errorf("the retry: %+v, %v", l, err)
		}
		req = alias("sale")
		again, err := b.created(t.Context(), time.Now(), under("k", writer("rival")), &req)
		if err != nil || again.ID != l.ID {
			t.Errorf("the retry again: %+v, %v", again, err)
		}
	})
}

// A generated code never takes a reserved alias.
func TestAGeneratedCodeIsReserved(t *testing.T) {
	b, _ := over(t)
	b.hold(t, noon(), writer("acme"), "c000001")
	for _, who := range []auth.Principal{writer("rival"), writer("acme")} {
		if l := b.mustCreate(t, who, to("https://example.com/")); l.Key.Code == "c000001" {
			t.Errorf("%s was given the reserved code", who.Workspace)
		}
	}
}

// A create without an alias asks nothing of the store but to store it.
func TestACreateWithoutAnAliasCostsNothingMore(t *testing.T) {
	b, store := over(t)
	b.hold(t, noon(), writer("acme"), "sale")
	reads := store.reads()
	for range 10 {
		b.mustCreate(t, writer("acme"), to("https://example.com/"))
	}
	b.mustCreate(t, writer("acme"), alias("sale"))
	if store.reads() != reads || store.reserves.Load() != 1 {
		t.Errorf("%d reads and %d reservations more", store.reads()-reads, store.reserves.Load()-1)
	}
}
