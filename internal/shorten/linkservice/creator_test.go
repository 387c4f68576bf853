package linkservice_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"curt/internal/auth"
	"curt/internal/codegen"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/shorten"
	"curt/internal/shorten/linkservice"
)

func TestCreateStoresWhatWasAskedFor(t *testing.T) {
	b := newBench(t)
	req := shorten.Request{
		Fields: shorten.Fields{
			LongURL: shorten.Value(" HTTPS://Example.COM:443/a/../b "), StartsAt: shorten.Value(noon().Add(time.Hour)),
			ExpiresIn: shorten.Value[int64](86400), Redirect: shorten.Value[int64](308), Title: shorten.Value("Käse & <b>"),
			Tags: shorten.Value([]string{"b", "a"}), MaxClicks: shorten.Value[int64](5), Fallback: shorten.Value("http://example.org"),
			ForwardQuery: shorten.Value(true), NoIndex: shorten.Value(false),
		},
		Alias: shorten.Value("My-Alias_1"), Domain: shorten.Value("GO.example"),
	}
	got, err := b.created(t.Context(), noon().Add(1234567*time.Nanosecond), by(admin()), &req)
	if err != nil {
		t.Fatal(err)
	}
	created := noon().Add(time.Millisecond)
	want := link.Link{
		Key: link.Key{Domain: "go.example", Code: "My-Alias_1"}, Destination: "https://example.com/b",
		Workspace: link.WorkspaceDefault, Status: link.Active, Safety: link.Clean, Redirect: 308,
		Starts: noon().Add(time.Hour), Expires: created.Add(24 * time.Hour), Created: created, Updated: created,
		MaxClicks: 5, Fallback: "http://example.org/", ForwardQuery: true, CreatedBy: auth.AdminKeyID,
		Title: "Käse & <b>", Tags: []string{"b", "a"}, Version: 1,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(link.Link{}, "ID")); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	if !got.ID.Time().Equal(created) {
		t.Errorf("the id says %s, want %s", got.ID.Time(), created)
	}
	stored, err := b.store.Get(t.Context(), got.Key)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, stored); diff != "" {
		t.Errorf("stored (-answered +stored):\n%s", diff)
	}
}

func TestDefaultsOfALink(t *testing.T) {
	b := newBench(t)
	got := b.mustCreate(t, admin(), to("http://example.com"))
	want := link.Link{
		Key: link.Key{Code: "c000001"}, Destination: "http://example.com/", Workspace: link.WorkspaceDefault,
		Status: link.Active, Safety: link.Clean, Redirect: 302, NoIndex: true, CodeKind: link.Counted,
		Created: noon(), Updated: noon(), CreatedBy: auth.AdminKeyID, Version: 1,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(link.Link{}, "ID")); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
}

func TestOnlyUnknownCodesAreAnnounced(t *testing.T) {
	b := newBench(t)
	b.mustCreate(t, admin(), to("http://example.com"))
	if len(*b.announced) != 0 {
		t.Errorf("a counted code was announced: %v", *b.announced)
	}
	req := to("http://example.com")
	req.Alias = shorten.Value("mine")
	alias := b.mustCreate(t, admin(), req)
	b.codes.promise = codegen.Likely
	random := b.mustCreate(t, admin(), to("http://example.com"))
	want := []link.Change{{Key: alias.Key, Version: 1}, {Key: random.Key, Version: 1}}
	if diff := cmp.Diff(want, *b.announced); diff != "" {
		t.Errorf("announced (-want +got):\n%s", diff)
	}
}

func TestOneAliasHasOneWinner(t *testing.T) {
	b := newBench(t)
	var won, taken atomic.Int32
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			req := to(fmt.Sprintf("http://example.com/%d", i))
			req.Alias = shorten.Value("the-one")
			switch _, err := b.created(t.Context(), noon(), by(admin()), &req); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, shorten.ErrTaken) && errors.Is(err, link.ErrExists):
				taken.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || taken.Load() != 999 {
		t.Errorf("%d won and %d were told that it is taken, want 1 and 999", won.Load(), taken.Load())
	}
}

func TestTakenCodesAreSkippedAndReported(t *testing.T) {
	b := newBench(t)
	req := to("http://example.com/")
	req.Alias = shorten.Value("c000001") // the shape of a generated code
	b.mustCreate(t, admin(), req)
	got := b.mustCreate(t, admin(), to("http://example.org/"))
	if got.Key.Code != "c000002" {
		t.Errorf("got code %s, want the next one", got.Key.Code)
	}
	if diff := cmp.Diff([]link.Code{"c000001"}, b.codes.burned); diff != "" {
		t.Errorf("burned (-want +got):\n%s", diff)
	}
	if got := b.counter(t, "curt_code_collisions_total"); got != 1 {
		t.Errorf("the alarm counter stands at %v, want 1", got)
	}
	if attempts := []int{b.codes.needs[0].Attempt, b.codes.needs[1].Attempt}; !slices.Equal(attempts, []int{0, 1}) {
		t.Errorf("attempts %v, want 0 and 1", attempts)
	}

	b.codes.promise = codegen.Likely
	b.codes.next = []link.Code{"c000001"}
	b.mustCreate(t, admin(), to("http://example.net/"))
	if got := b.counter(t, "curt_code_collisions_total"); got != 1 {
		t.Errorf("a likely code raised the alarm: %v", got)
	}
}

func TestGeneratedCodesAreNeverReservedWords(t *testing.T) {
	b := newBench(t)
	b.codes.next = []link.Code{"healthz", "PRIVACY", "metrics"}
	if got := b.mustCreate(t, admin(), to("http://example.com")); got.Key.Code != "c000001" {
		t.Errorf("got code %s", got.Key.Code)
	}
	if len(b.codes.burned) != 0 {
		t.Errorf("reserved words were reported as collisions: %v", b.codes.burned)
	}
}

func TestTheSearchForACodeEnds(t *testing.T) {
	b := newBench(t)
	req := to("http://example.com/")
	req.Alias = shorten.Value("again")
	b.mustCreate(t, admin(), req)
	b.codes.next = slices.Repeat([]link.Code{"again"}, 1000)
	_, err := b.created(t.Context(), noon(), by(admin()), new(to("http://example.org")))
	wantError(t, "all codes taken", err, link.ErrUnavailable)

	b.codes.err = codegen.ErrExhausted
	_, err = b.created(t.Context(), noon(), by(admin()), new(to("http://example.org")))
	wantError(t, "no codes left", err, codegen.ErrExhausted)
}

// faulty answers Create with the given faults in turn, then with the store's word.
func faulty(store link.Store, applied bool, faults ...error) link.Store {
	var n atomic.Int32
	return linktest.WithFaults(store, func(op linktest.Op, _ link.Key) (bool, error) {
		if i := int(n.Add(1)) - 1; op == linktest.OpCreate && i < len(faults) {
			return applied, faults[i]
		}
		return true, nil
	})
}

func TestLostAnswerIsAskedForAgainWithTheSameID(t *testing.T) {
	lost := errors.New("connection reset")
	for _, applied := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, func(cfg *linkservice.Config) { cfg.Store = faulty(cfg.Store, applied, lost, lost) })
			got := b.mustCreate(t, admin(), to("http://example.com"))
			if got.Key.Code != "c000001" || got.Version != 1 || b.stored(t) != 1 {
				t.Errorf("applied %v: got %s version %d, %d stored; want one link under the first code", applied, got.Key, got.Version, b.stored(t))
			}
			if len(b.codes.burned) != 0 {
				t.Errorf("applied %v: its own link was taken for a collision", applied)
			}
		})
	}
}

func TestUnknownOutcomeIsNotSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("connection reset")
		b := newBench(t, func(cfg *linkservice.Config) { cfg.Store = faulty(cfg.Store, false, lost, lost, lost) })
		_, err := b.created(t.Context(), noon(), by(admin()), new(to("http://example.com")))
		wantError(t, "three lost answers", err, link.ErrUncertain)
		wantError(t, "three lost answers", err, lost)
	})
}

func TestDecidedFailureIsNotRepeated(t *testing.T) {
	for _, fault := range []error{link.ErrUnavailable, link.ErrFull} {
		var asked atomic.Int32
		b := newBench(t, func(cfg *linkservice.Config) {
			cfg.Store = linktest.WithFaults(cfg.Store, func(linktest.Op, link.Key) (bool, error) {
				asked.Add(1)
				return false, fmt.Errorf("create: %w", fault)
			})
		})
		_, err := b.created(t.Context(), noon(), by(admin()), new(to("http://example.com")))
		wantError(t, "store down", err, fault)
		if asked.Load() != 1 {
			t.Errorf("%v: asked %d times, want once", fault, asked.Load())
		}
	}
}

func TestRetriesEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		lost := errors.New("connection reset")
		b := newBench(t, func(cfg *linkservice.Config) { cfg.Store = faulty(cfg.Store, false, lost, lost) })
		start := time.Now()
		_, err := b.created(ctx, noon(), by(admin()), new(to("http://example.com")))
		wantError(t, "context ended", err, link.ErrUncertain)
		if took := time.Since(start); took != time.Millisecond {
			t.Errorf("took %s, want to end with the context", took)
		}
	})
}

func TestAnonymousCreatesAreLimitedPerNetwork(t *testing.T) {
	b := newBench(t)
	create := func(from netip.Addr) error {
		_, err := b.created(t.Context(), noon(), by(auth.Anonymous(from, auth.LinksWrite)), new(to("http://example.com")))
		return err
	}
	for i := range 10 {
		if err := create(addr("2001:db8::1")); err != nil {
			t.Fatalf("create %d: %v", i, err)
		}
	}
	var limited *shorten.LimitedError
	if err := create(addr("2001:db8::ffff:1")); !errors.As(err, &limited) {
		t.Fatalf("a neighbour in the /64: got %v, want LimitedError", err)
	}
	if limited.Verdict.RetryAfter <= 0 {
		t.Errorf("verdict %+v says nothing about when", limited.Verdict)
	}
	if err := create(addr("2001:db8:0:1::1")); err != nil {
		t.Errorf("another /64: %v", err)
	}
	for range 10 {
		if err := create(addr("192.0.2.1")); err != nil {
			t.Fatal(err)
		}
	}
	if err := create(addr("::ffff:192.0.2.1")); !errors.As(err, &limited) {
		t.Errorf("the same address in IPv6 clothes: got %v, want LimitedError", err)
	}
	if err := create(addr("192.0.2.2")); err != nil {
		t.Errorf("another IPv4 address: %v", err)
	}
	if b.stored(t) != 22 {
		t.Errorf("%d links stored, want 22", b.stored(t))
	}
}

func TestKeysAreNotLimitedAndBadRequestsCostNothing(t *testing.T) {
	b := newBench(t)
	for range 50 {
		b.mustCreate(t, admin(), to("http://example.com"))
		_, err := b.created(t.Context(), noon(), by(auth.Anonymous(addr("192.0.2.1"), auth.LinksWrite)), new(to("ftp://example.com")))
		wantError(t, "bad request", err, link.ErrInvalid)
	}
	if len(b.limits.spent) != 0 {
		t.Errorf("charged: %v", b.limits.spent)
	}
	b.limits.err = link.ErrUnavailable
	_, err := b.created(t.Context(), noon(), by(auth.Anonymous(addr("192.0.2.1"), auth.LinksWrite)), new(to("http://example.com")))
	wantError(t, "limit cannot be asked", err, link.ErrUnavailable)
}

func TestWhoMayCreate(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		who  auth.Principal
		want error
	}{
		{auth.Principal{}, auth.ErrUnauthenticated},
		{auth.Anonymous(addr("192.0.2.1")), auth.ErrUnauthenticated},
		{auth.Anonymous(addr("192.0.2.1"), auth.LinksRead), auth.ErrUnauthenticated},
		{member("acme", auth.LinksRead, auth.StatsRead), auth.ErrForbidden},
		{member("acme", auth.LinksWrite), nil},
		{admin(), nil},
	} {
		l, err := b.created(t.Context(), noon(), by(tt.who), new(to("http://example.com")))
		wantError(t, fmt.Sprintf("%+v", tt.who), err, tt.want)
		if err == nil && (l.Workspace != tt.who.Workspace || l.CreatedBy != tt.who.KeyID) {
			t.Errorf("the link belongs to %s by %s", l.Workspace, l.CreatedBy)
		}
	}
	if b.stored(t) != 2 {
		t.Errorf("%d links stored, want 2", b.stored(t))
	}
}
