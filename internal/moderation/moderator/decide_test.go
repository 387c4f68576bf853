package moderator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
	"curt/internal/moderation/moderator"
)

// The journal is first: at the moment of the write it has the entry, and nothing is
// announced yet.
func TestADecisionIsWrittenDownThenTakesEffect(t *testing.T) {
	d := newDesk(t)
	k := d.make(t, 1)
	writes := 0
	d.store = watched{d.links, func(string) error {
		if writes++; len(d.entries(t)) != writes || len(d.changes()) != 0 {
			t.Errorf("at the write the journal has %d entries", len(d.entries(t)))
		}
		return nil
	}}
	d.open(t)
	out := d.decide(t, k, link.Blocked)
	if out.Err != nil || out.Link.Safety != link.Blocked || out.Link.Version != 2 || out.Entry.Sequence != 1 || out.Entry.Reason.Body != "because" {
		t.Errorf("%+v", out)
	}
	d.safety(t, k, link.Blocked)
	if got := d.changes(); len(got) != 1 || got[0] != (link.Change{Key: k, Version: 2}) || writes != 1 {
		t.Errorf("announced %v after %d writes", got, writes)
	}
	d.run(t)
	if len(d.changes()) != 0 || writes != 1 {
		t.Error("what is done was done again")
	}
	d.decide(t, k, link.Clean)
	d.safety(t, k, link.Clean)
}

func TestDecisionsAboutManyLinksHaveAnOutcomeEach(t *testing.T) {
	d := newDesk(t)
	gone := d.make(t, 1)
	if _, err := link.Update(t.Context(), d.links, gone, "tester", func(l *link.Link) error { *l = l.Tombstone(noon()); return nil }); err != nil {
		t.Fatal(err)
	}
	orders := []moderator.Order{{Key: gone, Safety: link.Legal, Reason: "x"}, {Key: link.Key{Code: "unknown"}, Safety: link.Warn, Reason: "x"}}
	for n := 2; n < moderator.MaxOrders; n++ {
		orders = append(orders, moderator.Order{Key: d.make(t, n), Safety: link.Safety(n%5 + 1), Reason: fmt.Sprint("reason ", n), Evidence: "{}"})
	}
	out, err := d.Decide(t.Context(), noon(), "moderator", orders)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range out {
		if i < 2 {
			if !errors.Is(o.Err, link.ErrNotFound) || o.Entry.Sequence != 0 {
				t.Errorf("order %d: %+v", i, o)
			}
			continue
		}
		if o.Err != nil || o.Entry.Reason.Body != orders[i].Reason || o.Entry.Evidence.Body != "{}" || o.Link.Key != orders[i].Key {
			t.Errorf("order %d: %+v", i, o)
		}
		d.safety(t, orders[i].Key, orders[i].Safety)
	}
	if n := len(d.entries(t)); n != len(orders)-2 {
		t.Errorf("%d entries", n)
	}
}

func TestOrdersThatNobodyCanCarryOut(t *testing.T) {
	d := newDesk(t)
	good := moderator.Order{Key: d.make(t, 1), Safety: link.Blocked, Reason: "because"}
	for field, spoil := range map[string]func(*moderator.Order){
		"safety":   func(o *moderator.Order) { o.Safety = 6 },
		"action":   func(o *moderator.Order) { o.Action = moderation.ActionBan },
		"reason":   func(o *moderator.Order) { o.Reason = " \n " },
		"reason ":  func(o *moderator.Order) { o.Reason = strings.Repeat("x", moderation.MaxReason+1) },
		"reason  ": func(o *moderator.Order) { o.Reason = "\x1b[31mred" },
		"reason !": func(o *moderator.Order) { o.Reason = "a\xff" },
		"evidence": func(o *moderator.Order) { o.Evidence = strings.Repeat("x", moderation.MaxEvidence+1) },
	} {
		bad := good
		spoil(&bad)
		_, err := d.Decide(t.Context(), noon(), "moderator", []moderator.Order{good, bad})
		wrong, ok := errors.AsType[*moderation.InvalidError](err)
		if name, _, _ := strings.Cut(field, " "); !ok || wrong.Field != name || !errors.Is(err, moderation.ErrInvalid) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, n := range []int{0, moderator.MaxOrders + 1} {
		if _, err := d.Decide(t.Context(), noon(), "moderator", make([]moderator.Order, n)); !errors.Is(err, moderation.ErrInvalid) {
			t.Errorf("%d orders: %v", n, err)
		}
	}
	if len(d.entries(t)) != 0 {
		t.Error("something was decided")
	}
	d.safety(t, good.Key, link.Clean)
}

func TestNothingHappensWithoutTheJournal(t *testing.T) {
	d := newDesk(t)
	k := d.make(t, 1)
	d.journal.Fail(link.ErrUnavailable)
	if _, err := d.Decide(t.Context(), noon(), "moderator", []moderator.Order{{Key: k, Safety: link.Blocked, Reason: "x"}}); !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if _, err := d.Ban(t.Context(), noon(), "moderator", moderation.Entity{Kind: moderation.KindKey, Name: "maker"}, link.Blocked, "x"); !errors.Is(err, link.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	d.safety(t, k, link.Clean)
	if len(d.Bans()) != 0 || len(d.changes()) != 0 {
		t.Error("something took effect")
	}
}

// What was decided while the links could not be written takes effect when they can, in
// this process or in the next.
func TestAnEffectThatFailedIsMadeGood(t *testing.T) {
	for _, restart := range []bool{false, true} {
		d := newDesk(t)
		k, other := d.make(t, 1), d.make(t, 2)
		full := true
		d.store = watched{d.links, func(method string) error {
			if full && method == "Replace" {
				return link.ErrFull
			}
			return nil
		}}
		d.open(t)
		out := d.decide(t, k, link.Blocked)
		if !errors.Is(out.Err, link.ErrFull) || out.Entry.Sequence != 1 {
			t.Errorf("%+v", out)
		}
		if _, err := d.Step(t.Context()); !errors.Is(err, link.ErrFull) {
			t.Errorf("step: %v", err)
		}
		d.open(t) // a start does not fail of it either
		d.safety(t, k, link.Clean)
		full = false
		d.decide(t, other, link.Warn) // is not held up
		if restart {
			if err := d.Keep(t.Context()); err != nil {
				t.Fatal(err)
			}
			d.open(t)
		} else {
			d.run(t)
		}
		d.safety(t, k, link.Blocked)
		d.safety(t, other, link.Warn)
		if got := d.changes(); len(got) != 2 {
			t.Errorf("announced %v", got)
		}
	}
}

// The next start does what the last run had no time for, and no more than that.
func TestAStartDoesTheRest(t *testing.T) {
	d := newDesk(t)
	var keys []link.Key
	for n := range 600 { // more than two pages
		keys = append(keys, d.make(t, n))
	}
	append1 := func(n int, s link.Safety) {
		if _, err := d.journal.Append(t.Context(), moderationtest.Decision(t, n, s)); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 600 {
		append1(n, link.Warn)
	}
	append1(7, link.Blocked)
	append1(5000, link.Blocked) // a link that never came to be
	d.open(t)
	for n, k := range keys {
		want := link.Warn
		if n == 7 {
			want = link.Blocked
		}
		d.safety(t, k, want)
	}
	if n := len(d.changes()); n != 600 {
		t.Errorf("%d links were announced", n)
	}
	d.run(t) // keeps how far it came
	asked := 0
	d.store = watched{d.links, func(string) error { asked++; return nil }}
	append1(8, link.Legal)
	d.open(t)
	if d.safety(t, keys[8], link.Legal); asked != 1 || len(d.changes()) != 1 {
		t.Errorf("%d links were written again", asked)
	}
}

// Many decide about one link while its owner changes it: the newest entry of the journal
// is what the link says, and the owner's changes are all there.
func TestDecisionsMeetEachOtherAndTheOwner(t *testing.T) {
	d := newDesk(t)
	k := d.make(t, 1)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() { d.decide(t, k, link.Safety(i%5+1)) })
		all.Go(func() {
			if _, err := link.Update(context.WithoutCancel(t.Context()), d.links, k, "tester", func(l *link.Link) error { l.Title += "x"; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	entries := d.entries(t)
	d.safety(t, k, entries[len(entries)-1].Safety)
	if l, err := d.links.Get(t.Context(), k); err != nil || len(l.Title) != 40 || len(entries) != 40 {
		t.Errorf("title %q, %d entries, %v", l.Title, len(entries), err)
	}
}

func TestEraseTakesTheTextsAway(t *testing.T) {
	d := newDesk(t)
	ban := d.ban(t, moderation.KindHost, "evil.example")
	said, err := d.Erase(t.Context(), noon(), "another", ban.Sequence, "names a person")
	if err != nil || said.Action != moderation.ActionErase || said.Reason.Body != "entry 1: names a person" || said.Actor != "another" {
		t.Errorf("%+v, %v", said, err)
	}
	if got := d.entries(t); len(got) != 2 || !got[0].Reason.Erased {
		t.Errorf("%+v", got)
	}
	if got := d.Bans(); len(got) != 1 || !got[0].Entry.Reason.Erased {
		t.Errorf("memory still says %+v", got)
	}
	for _, missing := range []uint64{0, 3, 1 << 63, 1<<64 - 1} {
		if _, err := d.Erase(t.Context(), noon(), "another", missing, "x"); !errors.Is(err, moderation.ErrNotFound) {
			t.Errorf("entry %d: %v", missing, err)
		}
	}
	for _, reason := range []string{"", strings.Repeat("x", moderation.MaxReason)} {
		if _, err := d.Erase(t.Context(), noon(), "another", 1, reason); !errors.Is(err, moderation.ErrInvalid) {
			t.Errorf("reason of %d bytes: %v", len(reason), err)
		}
	}
}

// A replay says of every link what the Moderator made of it.
func TestAReplayComesToTheSame(t *testing.T) {
	d := newDesk(t)
	var keys []link.Key
	for n := range 8 {
		keys = append(keys, d.make(t, n, to([]string{"https://evil.example/", "https://good.example/"}[n%2])))
	}
	for i := range 60 {
		e := moderationtest.Decision(t, i%8, link.Safety(i*7%5+1))
		if i%3 == 0 {
			e.Actor = moderation.ActorPolicy
		}
		if _, err := d.journal.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		switch i {
		case 20:
			d.ban(t, moderation.KindHost, "evil.example")
		case 40:
			d.ban(t, moderation.KindKey, "maker")
			d.lift(t, d.Bans()[0].Entry.Sequence)
		}
		d.run(t)
		replay := moderator.NewReplay()
		for _, e := range d.entries(t) {
			replay.Take(&e)
		}
		for _, k := range keys {
			l, err := d.links.Get(t.Context(), k)
			if want := replay.EffectiveSafety(&l); err != nil || l.Safety != want {
				t.Fatalf("after %d entries %s is %s, and the replay says %s", i, k, l.Safety, want)
			}
		}
	}
}

// Evidence and reasons may be as long as they may.
func TestBoundsOfOrders(t *testing.T) {
	d := newDesk(t)
	orders := make([]moderator.Order, moderator.MaxOrders)
	for i := range orders {
		orders[i] = moderator.Order{
			Key: d.make(t, i), Safety: link.Legal, Action: moderation.ActionAnswer,
			Reason: strings.Repeat("ü\n", moderation.MaxReason/4) + "end"[:moderation.MaxReason%4], Evidence: strings.Repeat("x", moderation.MaxEvidence),
		}
	}
	out, err := d.Decide(t.Context(), noon(), "moderator", orders)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range out {
		if o.Err != nil || o.Entry.Action != moderation.ActionAnswer || len(o.Entry.Evidence.Body) != moderation.MaxEvidence {
			t.Errorf("order %d: %+v", i, o)
		}
	}
}
