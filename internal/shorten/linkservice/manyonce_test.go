package linkservice_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/codegen"
	"curt/internal/idempotency"
	"curt/internal/idempotency/idempotencytest"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/shorten"
	"curt/internal/shorten/create"
	"curt/internal/shorten/linkservice"
)

// mixed are rows of every kind that may be sent again: some make a link, some find one,
// some are refused.
func mixed() []create.Row {
	batch := rows(
		to("https://example.com/1"), aliased("mine"), aliased("mine"), to("javascript:1"), deduped(to("https://example.com/2")),
		deduped(to("https://example.com/2")), to("https://example.com/1"), aliased("theirs"), shorten.Request{},
	)
	batch[8].Err = errors.New("no request")
	batch[6].Request.ExpiresIn = shorten.Value[int64](3600)
	return batch
}

// answers tells what became of rows: a link's id and code, or the error.
func answers(batch []create.Row) (all []string) {
	for _, r := range batch {
		if r.Err != nil {
			all = append(all, r.Err.Error())
			continue
		}
		all = append(all, fmt.Sprint(r.Result.Link.ID, " ", r.Result.Link.Key, " ", r.Result.Found))
	}
	return all
}

func same(t *testing.T, what string, want, got []string) {
	t.Helper()
	for i := range want {
		if want[i] != got[i] {
			t.Errorf("%s: row %d: %s, want %s", what, i, got[i], want[i])
		}
	}
}

func listed(t *testing.T, s link.Store) []link.Link {
	t.Helper()
	slice, err := s.List(t.Context(), link.Filter{}, link.Page{Limit: link.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	return slice.Links
}

// A batch that is sent again under its key, with another process and later, is answered
// with the same links; row by row, whatever became of them since.
func TestManyOnceAnswersWithTheSameLinks(t *testing.T) {
	store, records := linktest.NewMemory(), idempotencytest.NewMemory()
	first := process(t, store, records)
	first.mustCreate(t, member("other", auth.LinksWrite), aliased("theirs"))
	who := member("acme", auth.LinksWrite, auth.LinksRead)
	who.Plan = auth.PlanRegistered
	batch := mixed()
	verdict, err := first.CreateMany(t.Context(), noon(), under("k", who), batch)
	if err != nil || verdict == nil {
		t.Fatal(verdict, err)
	}
	want := answers(batch)
	later := process(t, store, records, func(cfg *linkservice.Config) { cfg.Codes = &codes{made: 100} })
	again := mixed()
	if verdict, err := later.CreateMany(t.Context(), noon().Add(2*time.Hour), under("k", who), again); err != nil || verdict != nil {
		t.Errorf("the retry: %v, %v: it was paid for", verdict, err)
	}
	same(t, "two hours later", want, answers(again))
	if n := len(listed(t, store)); n != 5 || records.Len() != 1 || later.counter(t, "curt_creates_replayed_total") != 1 {
		t.Errorf("%d links, %d records", n, records.Len())
	}

	gone := batch[0].Result.Link.Key
	if err := later.Delete(t.Context(), noon(), by(who), gone, shorten.Match{}); err != nil {
		t.Fatal(err)
	}
	if err := later.Delete(t.Context(), noon(), by(who), batch[1].Result.Link.Key, shorten.Match{}); err != nil {
		t.Fatal(err)
	}
	again = mixed()
	if _, err := later.CreateMany(t.Context(), noon(), under("k", who), again); err != nil {
		t.Fatal(err)
	}
	wantError(t, "a generated code that was deleted", again[0].Err, shorten.ErrLinkGone)
	wantError(t, "an alias that was deleted", again[1].Err, shorten.ErrLinkGone)
	same(t, "after deletions", want[2:], answers(again[2:]))
}

func TestManyOnceKnowsItsRequest(t *testing.T) {
	store, records := linktest.NewMemory(), idempotencytest.NewMemory()
	b := process(t, store, records)
	who := member("acme", auth.LinksWrite)
	once := func(key string, reqs ...shorten.Request) error {
		_, err := b.CreateMany(t.Context(), noon(), under(key, who), rows(reqs...))
		return err
	}
	one, two := to("https://example.com/1"), to("https://example.com/2")
	if err := once("k", one, two); err != nil {
		t.Fatal(err)
	}
	for what, reqs := range map[string][]shorten.Request{
		"in another order": {two, one}, "fewer": {one}, "more": {one, two, two}, "other": {one, to("https://example.com/3")},
	} {
		wantError(t, what, once("k", reqs...), shorten.ErrKeyReused)
	}
	_, err := b.Create(t.Context(), noon(), under("k", who), &one)
	wantError(t, "a single create", err, shorten.ErrKeyReused)
	if err := once("empty"); err != nil {
		t.Error(err)
	}
	if err := once("bad", to("javascript:1")); err != nil || records.Len() != 1 {
		t.Errorf("of rows of which nothing comes: %d records, %v", records.Len(), err)
	}
	if _, err := b.CreateMany(t.Context(), noon().Add(idempotency.Retention+time.Second), under("k", who), rows(two)); err != nil || len(listed(t, store)) != 3 {
		t.Errorf("a day later the key is free: %d links, %v", len(listed(t, store)), err)
	}
	_, err = b.CreateMany(t.Context(), noon(), under("k", auth.Anonymous(addr("192.0.2.1"), auth.LinksWrite)), rows(one))
	wantError(t, "without a key", err, auth.ErrUnauthenticated)
	_, err = process(t, store, nil).CreateMany(t.Context(), noon(), under("k", who), rows(one))
	wantError(t, "where no keys are kept", err, link.ErrInvalid)
}

// A try ends at every step; the next goes on from what is left, and makes nothing twice.
func TestManyOnceGoesOnAfterACrash(t *testing.T) {
	for name, breaks := range map[string]func(cfg *linkservice.Config, memory *linktest.Memory, records *idempotencytest.Memory){
		"the record is not stored": func(cfg *linkservice.Config, _ *linktest.Memory, r *idempotencytest.Memory) {
			cfg.Once = lostClaims{r, false}
		},
		"the record's answer is lost": func(cfg *linkservice.Config, _ *linktest.Memory, r *idempotencytest.Memory) {
			cfg.Once = lostClaims{r, true}
		},
		"the links' answer is lost": func(cfg *linkservice.Config, m *linktest.Memory, _ *idempotencytest.Memory) {
			cfg.Store = lossy{m, new(9), errWire}
		},
		"no codes are left": func(cfg *linkservice.Config, _ *linktest.Memory, _ *idempotencytest.Memory) {
			cfg.Codes = &codes{err: codegen.ErrExhausted}
		},
		"the limits cannot be charged": func(cfg *linkservice.Config, _ *linktest.Memory, _ *idempotencytest.Memory) {
			cfg.Limits = &limits{err: errWire}
		},
	} {
		t.Run(name, func(t *testing.T) {
			memory, records := linktest.NewMemory(), idempotencytest.NewMemory()
			who := member("acme", auth.LinksWrite)
			who.Plan = auth.PlanRegistered
			broken := process(t, memory, records, func(cfg *linkservice.Config) { breaks(cfg, memory, records) })
			if _, err := broken.CreateMany(t.Context(), noon(), under("k", who), mixed()); err == nil {
				t.Fatal("the broken try was answered")
			}
			before := listed(t, memory)
			after := process(t, memory, records, func(cfg *linkservice.Config) { cfg.Codes = &codes{made: 100} })
			batch := mixed()
			if _, err := after.CreateMany(t.Context(), noon().Add(time.Hour), under("k", who), batch); err != nil {
				t.Fatal(err)
			}
			all := listed(t, memory)
			if len(all) != 5 || len(before) != 0 && len(before) != 5 {
				t.Errorf("%d links, then %d", len(before), len(all))
			}
			for i, l := range before {
				if all[i].ID != l.ID || all[i].Key != l.Key {
					t.Errorf("link %d was %s, is %s", i, l.Key, all[i].Key)
				}
			}
			for i, wrong := range []bool{false, false, true, true, false, false, false, false, true} {
				if (batch[i].Err != nil) != wrong {
					t.Errorf("row %d: %v", i, batch[i].Err)
				}
			}
		})
	}
}

// A batch of aliases is stored, and its answer is lost: the retry has its links, and not the error that
// another link has the alias.
func TestManyOnceKnowsItsAliasesAfterACrash(t *testing.T) {
	memory, records, who := linktest.NewMemory(), idempotencytest.NewMemory(), member("acme", auth.LinksWrite)
	batch := func() []create.Row { return rows(aliased("one-alias"), aliased("other-alias")) }
	broken := process(t, memory, records, func(cfg *linkservice.Config) { cfg.Store = lossy{memory, new(9), errWire} })
	if _, err := broken.CreateMany(t.Context(), noon(), under("k", who), batch()); err == nil {
		t.Fatal("the broken try was answered")
	}
	again := batch()
	if _, err := process(t, memory, records).CreateMany(t.Context(), noon().Add(time.Hour), under("k", who), again); err != nil {
		t.Fatal(err)
	}
	for i := range again {
		if again[i].Err != nil {
			t.Errorf("row %d: %v", i, again[i].Err)
		}
	}
	if all := listed(t, memory); len(all) != 2 {
		t.Errorf("%d links, want 2", len(all))
	}
}

// Requests of one key that run at the same time, in two processes, share their links:
// each row has one, whatever codes were tried.
func TestManyOnceIsExactAmongParallelCallers(t *testing.T) {
	store, records := linktest.NewMemory(), idempotencytest.NewMemory()
	processes := []bench{
		process(t, store, records), process(t, store, records, func(cfg *linkservice.Config) { cfg.Codes = &codes{made: 500_000} }),
	}
	const callers = 50
	got := make([][]string, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			batch := mixed()
			_, err := processes[i%2].CreateMany(t.Context(), noon().Add(time.Duration(i)*time.Microsecond), under("k", member("acme", auth.LinksWrite)), batch)
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
			got[i] = answers(batch)
		})
	}
	wg.Wait()
	for i := range got {
		same(t, fmt.Sprint("caller ", i), got[0], got[i])
	}
	if n := len(listed(t, store)); n != 5 || records.Len() != 1 {
		t.Errorf("%d links, %d records", n, records.Len())
	}
}

// unwritten is a store whose batches never arrive.
type unwritten struct{ *linktest.Memory }

func (unwritten) CreateMany(context.Context, time.Time, []link.Creation) ([]link.Result, error) {
	return nil, errWire
}

// The codes of a batch are filed before it is written: a later try, in a process that would
// give others, asks the store for the very same links.
func TestManyOnceKeepsItsCodes(t *testing.T) {
	store, records := linktest.NewMemory(), idempotencytest.NewMemory()
	who := member("acme", auth.LinksWrite)
	broken := process(t, store, records, func(cfg *linkservice.Config) { cfg.Store = unwritten{store} })
	if _, err := broken.CreateMany(t.Context(), noon(), under("k", who), mixed()); err == nil {
		t.Fatal("the broken try was answered")
	}
	promised, err := records.Find(t.Context(), idempotency.Name{Caller: who.KeyID, Key: "k"})
	if err != nil || len(listed(t, store)) != 0 {
		t.Fatal(err, listed(t, store))
	}
	batch := mixed()
	later := process(t, store, records, func(cfg *linkservice.Config) { cfg.Codes = &codes{made: 100} })
	later.mustCreate(t, admin(), aliased("c000004")) // one of the codes is somebody else's by now
	if _, err := later.CreateMany(t.Context(), noon().Add(time.Hour), under("k", who), batch); err != nil {
		t.Fatal(err)
	}
	for i, want := range []link.Code{0: "c000001", 1: "mine", 4: "c000002", 6: "c000101", 7: "theirs"} {
		if got := batch[i].Result.Link; want != "" && (got.Key.Code != want || got.ID != promised.ID.Nth(i)) {
			t.Errorf("row %d is %s %s, want %s %s", i, got.ID, got.Key, promised.ID.Nth(i), want)
		}
	}
}

// Who has lost its rights learns what its batch has created, and creates nothing by that.
func TestABatchIsRecalledWithoutAWrite(t *testing.T) {
	store, records := linktest.NewMemory(), idempotencytest.NewMemory()
	who, lost := member("acme", auth.LinksWrite), auth.Principal{KeyID: member("acme").KeyID, Workspace: "acme"}
	later := process(t, store, records, func(cfg *linkservice.Config) { cfg.Store = unwritten{store} })
	recall := func(key string, now time.Time, batch []create.Row) bool {
		t.Helper()
		before := len(listed(t, store))
		created, err := later.Recall(t.Context(), now, under(key, lost), batch)
		if after := len(listed(t, store)); err != nil || after != before {
			t.Fatalf("%v, %d links, then %d", err, before, after)
		}
		return created
	}
	if recall("k", noon(), mixed()) {
		t.Error("a batch that never began has created links")
	}
	if _, err := later.CreateMany(t.Context(), noon(), under("filed", who), mixed()); err == nil {
		t.Fatal("the broken try was answered")
	}
	batch := mixed()
	if recall("filed", noon(), batch) || !errors.Is(batch[0].Err, create.ErrNotCreated) {
		t.Errorf("a batch that was never written has created links: %v", batch[0].Err)
	}
	first := mixed()
	if _, err := process(t, store, records, func(cfg *linkservice.Config) { cfg.Codes = &codes{made: 100} }).CreateMany(t.Context(), noon(), under("k", who), first); err != nil {
		t.Fatal(err)
	}
	batch = mixed()
	if !recall("k", noon().Add(time.Hour), batch) {
		t.Error("a batch that was written has created nothing")
	}
	for i, want := range answers(first) {
		if got := answers(batch)[i]; first[i].Err == nil && got != want || (first[i].Err == nil) != (batch[i].Err == nil) {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
	if _, err := later.Recall(t.Context(), noon(), under("k", lost), first[:2]); !errors.Is(err, shorten.ErrKeyReused) {
		t.Errorf("other rows under the key: %v", err)
	}
	if recall("k", noon().Add(idempotency.Retention+time.Second), mixed()) {
		t.Error("a key is believed for longer than a day")
	}
}

// A record of a release that filed no codes of batches stands all the same: its links are
// found by their ids.
func TestManyOnceKnowsRecordsWithoutCodes(t *testing.T) {
	store, records := linktest.NewMemory(), idempotencytest.NewMemory()
	who := member("acme", auth.LinksWrite)
	first, name := mixed(), idempotency.Name{Caller: who.KeyID, Key: "k"}
	if _, err := process(t, store, records).CreateMany(t.Context(), noon(), under("k", who), first); err != nil {
		t.Fatal(err)
	}
	kept, err := records.Find(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	old := kept
	old.Codes = ""
	if err := records.Change(t.Context(), name, kept, old); err != nil {
		t.Fatal(err)
	}
	later := process(t, store, records, func(cfg *linkservice.Config) { cfg.Codes = &codes{made: 100} })
	for _, hours := range []time.Duration{1, 2} { // the first of them files the codes
		again := mixed()
		if _, err := later.CreateMany(t.Context(), noon().Add(hours*time.Hour), under("k", who), again); err != nil {
			t.Fatal(err)
		}
		same(t, "hours later", answers(first), answers(again))
	}
}
