package linkservice_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"curt/internal/auth"
	"curt/internal/idempotency"
	"curt/internal/idempotency/idempotencytest"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/shorten"
	"curt/internal/shorten/linkservice"
)

var errWire = errors.New("connection reset by peer")

// process is one process of a service that others share: a Creator of its own on
// common stores, behind wires that the test may break.
func process(t *testing.T, store link.Store, records idempotency.Store, change ...func(*linkservice.Config)) bench {
	t.Helper()
	return newBench(t, append([]func(*linkservice.Config){func(cfg *linkservice.Config) {
		cfg.Store, cfg.Once = store, records
	}}, change...)...)
}

// One key, many callers in two processes: one link, one code, one answer.
func TestOnceIsExactAmongParallelCallers(t *testing.T) {
	store, records := linktest.NewMemory(), idempotencytest.NewMemory()
	var created atomic.Int64
	count := func(cfg *linkservice.Config) { cfg.Created = func(link.Key) { created.Add(1) } }
	processes := []bench{process(t, store, records, count), process(t, store, records, count)}
	const callers = 1000
	got := make([]link.Link, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			req := to("https://example.com/")
			made, err := processes[i%2].Create(t.Context(), noon().Add(time.Duration(i)*time.Microsecond), under("k", member("acme", auth.LinksWrite)), &req)
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
			got[i] = made.Link
		})
	}
	wg.Wait()
	for i := range got {
		if got[i].ID != got[0].ID || got[i].Key != got[0].Key {
			t.Fatalf("caller %d got %s, the first %s", i, got[i].Key, got[0].Key)
		}
	}
	if slice, err := store.List(t.Context(), link.Filter{}, link.Page{Limit: 10}); err != nil || len(slice.Links) != 1 || records.Len() != 1 {
		t.Errorf("%d links, %d records, %v", len(slice.Links), records.Len(), err)
	}
}

// A try ends at every step, with the write done or not; a later process goes on from
// what is left, hours later, with the code that was promised.
func TestOnceGoesOnAfterACrash(t *testing.T) {
	for name, broken := range map[string]struct {
		op      linktest.Op // of the link store; "" = of the records
		applied bool
	}{
		"the record is not stored":      {"", false},
		"the record's answer is lost":   {"", true},
		"only the record is stored":     {linktest.OpCreate, false},
		"the link's answer is lost":     {linktest.OpCreate, true},
		"the link cannot be asked for":  {linktest.OpGet, false},
		"the link is asked for in vain": {linktest.OpGet, true},
	} {
		t.Run(name, func(t *testing.T) { goesOn(t, broken.op, broken.applied, to("https://example.com/")) })
		t.Run("an alias, "+name, func(t *testing.T) { goesOn(t, broken.op, broken.applied, aliased("an-alias")) })
	}
}

func goesOn(t *testing.T, broken linktest.Op, applied bool, req shorten.Request) {
	t.Helper()
	store, records := linktest.NewMemory(), idempotencytest.NewMemory()
	wire := linktest.WithFaults(store, func(op linktest.Op, _ link.Key) (bool, error) {
		if op == broken {
			return applied, errWire
		}
		return true, nil
	})
	var lossy idempotency.Store = records
	if broken == "" {
		lossy = lostClaims{records, applied}
	}
	req.ExpiresIn = shorten.Value[int64](3600)
	if broken == linktest.OpGet { // a first try asks for nothing
		process(t, store, records).mustRepeat(t, member("acme", auth.LinksWrite), req)
	}
	_, err := process(t, wire, lossy).Create(t.Context(), noon(), under("k", member("acme", auth.LinksWrite)), &req)
	if err == nil {
		t.Fatal("the broken try was answered")
	}
	promised, _ := records.Find(t.Context(), idempotency.Name{Caller: "key-of-acme", Key: "k"})

	later := noon().Add(2 * time.Hour)
	after := process(t, store, records, func(cfg *linkservice.Config) { cfg.Codes = &codes{made: 100} })
	for range 2 {
		made, err := after.Create(t.Context(), later, under("k", member("acme", auth.LinksWrite)), &req)
		if err != nil || made.Found {
			t.Fatalf("the retry: %+v, %v", made, err)
		}
		if promised.Link.Code != "" && (made.Link.Key != promised.Link || made.Link.ID != promised.ID || !made.Link.Created.Equal(noon()) ||
			!made.Link.Expires.Equal(noon().Add(time.Hour))) {
			t.Errorf("the retry got %+v, promised was %+v", made.Link, promised)
		}
	}
	if slice, err := store.List(t.Context(), link.Filter{}, link.Page{Limit: 10}); err != nil || len(slice.Links) != 1 {
		t.Errorf("%d links, %v", len(slice.Links), err)
	}
}

// lostClaims breaks the wire at each claim.
type lostClaims struct {
	idempotency.Store

	applied bool
}

func (l lostClaims) Claim(ctx context.Context, n idempotency.Name, r idempotency.Record, since time.Time) (idempotency.Record, error) {
	if l.applied {
		if _, err := l.Store.Claim(ctx, n, r, since); err != nil {
			return idempotency.Record{}, err
		}
	}
	return idempotency.Record{}, errWire
}

// A generated code that is taken by the time of the retry is replaced in the record, so
// that the next retry knows it.
func TestOnceTakesTheNextCode(t *testing.T) {
	b := newBench(t)
	b.mustCreate(t, admin(), aliased("c000001"))
	b.mustCreate(t, admin(), aliased("c000002"))
	req := to("https://example.com/")
	first := b.mustRepeat(t, admin(), req)
	again := b.mustRepeat(t, admin(), req)
	if first.Key.Code != "c000003" || again.ID != first.ID || len(b.codes.burned) != 2 {
		t.Errorf("got %s, then %s; burned %v", first.Key, again.Key, b.codes.burned)
	}
}

func aliased(alias string) shorten.Request {
	req := to("https://example.com/" + alias)
	req.Alias = shorten.Value(alias)
	return req
}

// What was refused leaves the key free, and a retry is refused in the same words.
func TestOnceFreesTheKeyOfARefusedRequest(t *testing.T) {
	b := newBench(t)
	b.mustCreate(t, admin(), aliased("taken"))
	for _, refused := range []struct {
		req  shorten.Request
		want error
	}{
		{aliased("taken"), shorten.ErrTaken}, {aliased("admin"), shorten.ErrReserved}, {to("javascript:1"), link.ErrInvalid},
	} {
		for range 2 {
			req := refused.req
			_, err := b.Create(t.Context(), noon(), under("k", admin()), &req)
			wantError(t, "a refused request", err, refused.want)
		}
	}
	if got := b.mustRepeat(t, admin(), aliased("free-now")); got.Key.Code != "free-now" {
		t.Errorf("the key was not free: %s", got.Key)
	}
}

// A key stands for one request of one caller for a day.
func TestOnceKnowsRequestCallerAndDay(t *testing.T) {
	b := newBench(t)
	req := to("https://example.com/")
	first := b.mustRepeat(t, admin(), req)
	for name, other := range map[string]shorten.Request{
		"another URL": to("https://example.com/other"), "an alias": aliased("an-alias"),
		"a title": {Fields: shorten.Fields{LongURL: req.LongURL, Title: shorten.Value("")}},
		"dedupe":  {Fields: req.Fields, Dedupe: shorten.Value(true)},
	} {
		_, err := b.Create(t.Context(), noon(), under("k", admin()), &other)
		wantError(t, name, err, shorten.ErrKeyReused)
	}
	if got := b.mustRepeat(t, member("acme", auth.LinksWrite), req); got.ID == first.ID {
		t.Error("two callers share a key")
	}
	day := noon().Add(idempotency.Retention)
	if got, err := b.created(t.Context(), day, under("k", admin()), &req); err != nil || got.ID != first.ID {
		t.Errorf("a day later: %s, %v", got.Key, err)
	}
	if got, err := b.created(t.Context(), day.Add(time.Millisecond), under("k", admin()), &req); err != nil || got.ID == first.ID {
		t.Errorf("after the day: %s, %v", got.Key, err)
	}
	anonymous := auth.Anonymous(addr("192.0.2.1"), auth.LinksWrite)
	_, err := b.Create(t.Context(), noon(), under("k", anonymous), &req)
	wantError(t, "without a key", err, link.ErrInvalid)
	_, err = b.Create(t.Context(), noon(), under("k", member("acme", auth.LinksRead)), &req)
	wantError(t, "without the scope", err, auth.ErrForbidden)
}

// A replay costs nothing of the caller's limit, shows changes, and tells of a deletion.
func TestOnceAnswersWithTheLinkAsItStands(t *testing.T) {
	b := newBench(t)
	req := aliased("an-alias")
	req.ExpiresAt = shorten.Value(noon().Add(time.Minute))
	first := b.mustRepeat(t, admin(), req)
	change := shorten.Change{Fields: shorten.Fields{Title: shorten.Value("new")}}
	if _, err := b.Update(t.Context(), noon(), by(admin()), first.Key, shorten.Match{}, &change); err != nil {
		t.Fatal(err)
	}
	later := noon().Add(time.Hour) // its date lies in the past by now
	if got, err := b.created(t.Context(), later, under("k", admin()), &req); err != nil || got.Version != 2 || got.Title != "new" {
		t.Errorf("after a change: %+v, %v", got, err)
	}
	if n := b.counter(t, "curt_creates_replayed_total"); n != 1 {
		t.Errorf("%v replays were counted", n)
	}
	if err := b.Delete(t.Context(), later, by(admin()), first.Key, shorten.Match{}); err != nil {
		t.Fatal(err)
	}
	_, err := b.created(t.Context(), later, under("k", admin()), &req)
	wantError(t, "after the deletion", err, shorten.ErrLinkGone)
}

// With dedupe the key stands for the link that was found, from then on.
func TestOnceKeepsWhatDedupeFound(t *testing.T) {
	b := newBench(t)
	existing := b.mustCreate(t, admin(), to("https://example.com/"))
	req := to("https://example.com/")
	req.Dedupe = shorten.Value(true)
	for range 2 {
		made, err := b.Create(t.Context(), noon(), under("k", admin()), &req)
		if err != nil || !made.Found || made.Link.ID != existing.ID {
			t.Errorf("got %s, found %t, %v", made.Link.Key, made.Found, err)
		}
	}
	change := shorten.Change{Fields: shorten.Fields{LongURL: shorten.Value("https://example.com/moved")}}
	if _, err := b.Update(t.Context(), noon(), by(admin()), existing.Key, shorten.Match{}, &change); err != nil {
		t.Fatal(err)
	}
	made, err := b.Create(t.Context(), noon(), under("k", admin()), &req)
	if err != nil || !made.Found || made.Link.ID != existing.ID || b.stored(t) != 1 {
		t.Errorf("after a change: %s, found %t, %v; %d links", made.Link.Key, made.Found, err, b.stored(t))
	}
}

// A request waits five seconds for the first one of its key. When the first fails, one
// of those who wait goes on.
func TestOnceWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan error)
		store := linktest.NewMemory()
		wire := linktest.WithFaults(store, func(op linktest.Op, _ link.Key) (bool, error) {
			if op == linktest.OpCreate {
				if err := <-gate; err != nil {
					return false, err
				}
			}
			return true, nil
		})
		b := process(t, wire, idempotencytest.NewMemory())
		answers := make(chan error, 3)
		send := func(req shorten.Request) {
			go func() {
				_, err := b.Create(t.Context(), noon(), under("k", admin()), &req)
				answers <- err
			}()
			synctest.Wait()
		}
		send(to("https://example.com/"))
		send(to("https://example.com/"))
		began := time.Now()
		wantError(t, "the second", <-answers, shorten.ErrKeyBusy)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("the second waited %s", took)
		}
		send(to("https://example.com/"))
		send(to("https://example.com/other"))
		gate <- link.ErrUnavailable
		wantError(t, "the first", <-answers, link.ErrUnavailable)
		gate <- nil // for the third, or for nobody when the fourth came first
		errs := []error{<-answers, <-answers}
		if errs[0] != nil && errs[1] != nil || !errors.Is(errors.Join(errs...), shorten.ErrKeyReused) {
			t.Errorf("those who waited: %v", errs)
		}
	})
}

// Two requests race for one key: one content wins, the other is told.
func TestOnceAmongDifferentRequests(t *testing.T) {
	b := newBench(t)
	var won, lost atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			req := to(fmt.Sprintf("https://example.com/%d", i%2))
			switch _, err := b.Create(t.Context(), noon(), under("k", admin()), &req); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, shorten.ErrKeyReused):
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 50 || lost.Load() != 50 || b.stored(t) != 1 {
		t.Errorf("%d won, %d lost, %d links", won.Load(), lost.Load(), b.stored(t))
	}
}
