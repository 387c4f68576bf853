// Package expirytest proves that links which expired are announced, and that their content is removed,
// over stores of links.
package expirytest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"curt/internal/background"
	"curt/internal/expiry"
	"curt/internal/feed"
	"curt/internal/joblease"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// Store is a store of links whose ends are announced.
type Store interface {
	link.Store
	link.EventLog
	link.CreateLog

	BothFollowers() feed.Positions[link.Position]
}

// Harness is what a store gives to the suite.
type Harness struct {
	Open func(t testing.TB) Store
	// Again returns a second handle on its data, as another process would have it; nil = there is one.
	Again func(t testing.TB, s Store) Store
	// Late begins the create of a link with a counted code, one that is a copy of another but for its
	// code, which is not committed, and returns what commits it; nil = a store with one writer.
	Late func(t testing.TB, s Store, of, code link.Code) (commit func())
}

// Run proves a store.
func Run(t *testing.T, h Harness) {
	for name, run := range map[string]func(*testing.T, Harness){
		"first start": firstStart, "lateness": lateness, "kills": kills, "two holders": twoHolders,
		"outage": outage, "removal": removal, "revival": revival,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); run(t, h) })
	}
	if h.Late != nil {
		t.Run("late commit", func(t *testing.T) { t.Parallel(); lateCommit(t, h) })
		t.Run("outage behind an open transaction", func(t *testing.T) { t.Parallel(); outageBehindTransaction(t, h) })
	}
}

// patience is how long the suite waits for what must come.
const patience = 2 * time.Minute

// ended is a link that expired some time ago.
func ended(n int, code link.Code, kind link.CodeKind, ago time.Duration) link.Link {
	l := linktest.Chosen(n, code)
	l.CodeKind, l.Title, l.Tags, l.Fallback = kind, "private", []string{"private"}, "https://fallback.example/"
	l.Created = time.Now().UTC().Truncate(time.Millisecond)
	l.Updated, l.Expires = l.Created, l.Created.Add(-ago)
	return l
}

func create(t testing.TB, s link.Store, l link.Link) link.Link {
	t.Helper()
	stored, err := s.Create(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// update changes a link as an owner does.
func update(t testing.TB, s link.Store, code link.Code, f func(l *link.Link)) {
	t.Helper()
	if _, err := link.Update(t.Context(), s, link.Key{Code: code}, "owner", func(l *link.Link) error { f(l); return nil }); err != nil {
		t.Fatal(err)
	}
}

// announced returns how often each code was announced, and when first.
func announced(t testing.TB, s Store) (times map[link.Code]int, first map[link.Code]time.Time) {
	t.Helper()
	times, first = map[link.Code]int{}, map[link.Code]time.Time{}
	for at := link.Position(""); ; {
		events, next, err := s.Events(t.Context(), at, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			for _, k := range events[i].Keys {
				if times[k.Code]++; times[k.Code] == 1 {
					first[k.Code] = events[i].At
				}
			}
		}
		if len(events) == 0 {
			return times, first
		}
		at = next
	}
}

// await waits until codes were announced.
func await(t testing.TB, s Store, codes ...link.Code) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		times, _ := announced(t, s)
		missing := slices.DeleteFunc(slices.Clone(codes), func(c link.Code) bool { return times[c] > 0 })
		if len(missing) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not announced: %v", missing)
		}
	}
}

// lease gives one fence to its holder, whatever others do.
type lease struct{ fence uint64 }

func (l lease) Acquire(_ context.Context, name, holder string, _ time.Duration) (joblease.Lease, error) {
	return joblease.Lease{Name: name, Holder: holder, Fence: l.fence}, nil
}
func (lease) Renew(context.Context, joblease.Lease, time.Duration) error { return nil }
func (lease) Release(context.Context, joblease.Lease) error              { return nil }

// start runs a sweeper with a fence over a store until stop is called, which waits for its end.
func start(t testing.TB, s Store, fence uint64) (sweeper *expiry.Sweeper, stop func()) {
	t.Helper()
	return startRemoving(t, s, fence, 0, nil)
}

// startRemoving is start for a sweeper that removes content.
func startRemoving(t testing.TB, s Store, fence uint64, retention time.Duration, changed func(link.Change)) (sweeper *expiry.Sweeper, stop func()) {
	t.Helper()
	sweeper = expiry.NewSweeper(expiry.Config{
		Retention: retention, Changed: changed,
		Links: s, Logs: s, Positions: s.BothFollowers(), Now: time.Now, Yielder: background.Inline{}, Log: slog.New(slog.DiscardHandler),
		Once: joblease.Once{Store: lease{fence}, Holder: "test", Log: slog.New(slog.DiscardHandler)},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- sweeper.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return sweeper, stop
}

// begin lets a first sweeper find where the ends of a store begin.
func begin(t testing.TB, s Store) {
	t.Helper()
	sweeper, stop := start(t, s, 1)
	defer stop()
	awaitBegin(t, s)
	create(t, s, ended(1, "begun", link.Chosen, time.Hour))
	await(t, s, "begun")
	for end := time.Now().Add(patience); sweeper.Announced() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) { // they are counted after they can be seen
			t.Fatal("nothing is counted")
		}
	}
}

// awaitBegin waits until a position is stored.
func awaitBegin(t testing.TB, s Store) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if _, begun, err := s.BothFollowers().FollowerPosition(t.Context(), expiry.Name); err != nil {
			t.Fatal(err)
		} else if begun {
			return
		} else if time.Now().After(end) {
			t.Fatal("it does not begin")
		}
	}
}

// firstStart: what had expired before is not announced, what comes later is.
func firstStart(t *testing.T, h Harness) {
	s := h.Open(t)
	create(t, s, ended(2, "ancient", link.Counted, 24*time.Hour))
	sweeper, stop := start(t, s, 1)
	awaitBegin(t, s)
	create(t, s, ended(3, "later", link.Chosen, time.Hour))
	await(t, s, "later")
	if times, _ := announced(t, s); times["ancient"] > 0 {
		t.Error("a link that expired before the first start was announced")
	}
	if lag := sweeper.Lag(); lag <= 0 || lag > time.Minute {
		t.Errorf("it lags %s behind", lag)
	}
	if stop(); sweeper.Lag() != 0 {
		t.Error("a server that does not sweep lags")
	}
}

// lateWithin bounds lateness on a machine that others use too, and in a database where others' transactions
// are open. The five seconds that are promised are those of the clock of package expiry's own tests.
const lateWithin = 30 * time.Second

// lateness: a link is announced soon after its end, and after a write that lets it have expired; not
// before; and again after a revival.
func lateness(t *testing.T, h Harness) {
	s := h.Open(t)
	begin(t, s)
	create(t, s, ended(10, "sooner", link.Chosen, -time.Hour))
	disabled := ended(11, "enabled", link.Chosen, time.Hour)
	disabled.Status = link.Disabled
	create(t, s, disabled)
	create(t, s, ended(12, "never", link.Chosen, -time.Hour))
	start(t, s, 2)
	soon := create(t, s, ended(13, "soon", link.Counted, -1500*time.Millisecond))
	await(t, s, "soon")
	wrote := time.Now()
	create(t, s, ended(14, "stillborn", link.Counted, time.Hour))
	update(t, s, "sooner", func(l *link.Link) { l.Expires = soon.Expires.Add(-time.Hour) })
	update(t, s, "enabled", func(l *link.Link) { l.Status = link.Active })
	await(t, s, "stillborn", "sooner", "enabled")
	times, first := announced(t, s)
	for code, since := range map[link.Code]time.Time{"soon": soon.Expires, "stillborn": wrote, "sooner": wrote, "enabled": wrote} {
		if late := first[code].Sub(since); late < -time.Millisecond || late > lateWithin {
			t.Errorf("%s was announced %s late", code, late)
		}
	}
	if times["never"] > 0 {
		t.Error("a link that has not expired was announced")
	}
	update(t, s, "soon", func(l *link.Link) { l.Expires = time.Now().UTC().Truncate(time.Millisecond).Add(time.Second) })
	for end := time.Now().Add(patience); times["soon"] < 2; time.Sleep(10 * time.Millisecond) {
		if times, _ = announced(t, s); time.Now().After(end) {
			t.Fatal("the second end of a link was not announced")
		}
	}
}

// stopped is a store over which a process was killed.
type stopped struct {
	Store

	left  *atomic.Int64 // calls until the kill: it comes before a call, or behind it
	kill  func()
	reads *atomic.Int64 // what it did, for the test to see that all is met
}

// step returns false from the kill on.
func (s *stopped) step() error {
	s.reads.Add(1)
	if s.left.Add(-1) >= 0 {
		return nil
	}
	s.kill()
	return errors.New("killed")
}

func stepped[T any](s *stopped, call func() (T, error)) (got T, err error) {
	if err = s.step(); err == nil {
		got, err = call()
	}
	return got, errors.Join(err, s.step())
}

type page[T, P any] struct {
	all  []T
	next P
	more bool
}

func (s *stopped) Expired(ctx context.Context, after link.Cursor, before time.Time, n int) ([]link.Key, link.Cursor, error) {
	p, err := stepped(s, func() (p page[link.Key, link.Cursor], err error) {
		p.all, p.next, err = s.Store.Expired(ctx, after, before, n)
		return p, err
	})
	return p.all, p.next, err
}

func (s *stopped) ExpiryChanges(ctx context.Context, after link.Position, n int) ([]link.Key, link.Position, bool, error) {
	p, err := stepped(s, func() (p page[link.Key, link.Position], err error) {
		p.all, p.next, p.more, err = s.Store.ExpiryChanges(ctx, after, n)
		return p, err
	})
	return p.all, p.next, p.more, err
}

func (s *stopped) CreatesEnded(ctx context.Context, after link.Position, by time.Time, n int) ([]link.Key, link.Position, bool, error) {
	p, err := stepped(s, func() (p page[link.Key, link.Position], err error) {
		p.all, p.next, p.more, err = s.Store.CreatesEnded(ctx, after, by, n)
		return p, err
	})
	return p.all, p.next, p.more, err
}

func (s *stopped) Append(ctx context.Context, e link.Event) error {
	_, err := stepped(s, func() (struct{}, error) { return struct{}{}, s.Store.Append(ctx, e) })
	return err
}

func (s *stopped) Replace(ctx context.Context, l link.Link, e link.Edit) (link.Link, error) {
	return stepped(s, func() (link.Link, error) { return s.Store.Replace(ctx, l, e) })
}

func (s *stopped) BothFollowers() feed.Positions[link.Position] {
	return &stoppedPositions{s.Store.BothFollowers(), s}
}

type stoppedPositions struct {
	feed.Positions[link.Position]

	of *stopped
}

func (p *stoppedPositions) FollowerPosition(ctx context.Context, name string) (link.Position, bool, error) {
	got, err := stepped(p.of, func() (got page[struct{}, link.Position], err error) {
		got.next, got.more, err = p.Positions.FollowerPosition(ctx, name)
		return got, err
	})
	return got.next, got.more, err
}

func (p *stoppedPositions) MoveFollower(ctx context.Context, name string, fence uint64, to link.Position) error {
	_, err := stepped(p.of, func() (struct{}, error) { return struct{}{}, p.Positions.MoveFollower(ctx, name, fence, to) })
	return err
}

// fewestPlaces is how many places a round has at least at which a process can be killed.
const fewestPlaces = 12

// waits is how long a round may take to its nth place: those that it has are waited for.
func waits(n int) time.Duration {
	if n < fewestPlaces {
		return patience
	}
	return time.Second
}

// kills ends a sweeper before and behind each call that it does: all is announced by the next one.
func kills(t *testing.T, h Harness) {
	s := h.Open(t)
	begin(t, s)
	fence := uint64(1)
	for n := 0; ; n++ {
		var codes []link.Code
		put := func(name string, kind link.CodeKind, ago time.Duration) {
			code := link.Code(fmt.Sprintf("%s%03d", name, n))
			codes = append(codes, code)
			create(t, s, ended(1000+10*n+len(codes), code, kind, ago))
		}
		put("ahead", link.Counted, 30*time.Minute-time.Duration(n)*time.Second) // of the cursor
		put("behind", link.Counted, 2*time.Hour)
		put("chosen", link.Chosen, 2*time.Hour)
		put("changed", link.Chosen, -time.Hour)
		update(t, s, codes[3], func(l *link.Link) { l.Expires = l.Expires.Add(-4 * time.Hour) })

		killed := make(chan struct{})
		var once sync.Once
		victim := &stopped{Store: s, left: new(atomic.Int64), reads: new(atomic.Int64), kill: func() { once.Do(func() { close(killed) }) }}
		victim.left.Store(int64(n))
		fence++
		_, stop := start(t, victim, fence)
		met := true
		select {
		case <-killed:
		case <-time.After(waits(n)):
			met = false // so much it does not do in a round
		}
		stop()
		fence++
		_, stop = start(t, s, fence)
		await(t, s, codes...)
		stop()
		if !met {
			t.Logf("killed at %d places", n)
			if n < fewestPlaces {
				t.Errorf("a round has %d places only", n)
			}
			return
		}
	}
}

// twoHolders: of two servers that both sweep, because one was paused while its lease went to the other,
// the paused one cannot move the position past what the other has not read.
func twoHolders(t *testing.T, h Harness) {
	s := h.Open(t)
	other := s
	if h.Again != nil {
		other = h.Again(t, s)
	}
	begin(t, s)
	paused, resume := make(chan struct{}), make(chan struct{})
	start(t, &pausing{Store: s, paused: paused, resume: resume}, 2)
	create(t, s, ended(20, "first", link.Counted, 30*time.Minute))
	<-paused // it has announced a link, and is about to move the position
	create(t, other, ended(21, "second", link.Counted, 20*time.Minute))
	_, stop := start(t, other, 3)
	await(t, other, "first", "second")
	stop()
	create(t, s, ended(22, "between", link.Counted, 25*time.Minute)) // behind the second cursor, ahead of the first
	close(resume)
	start(t, other, 4)
	create(t, s, ended(23, "third", link.Chosen, 2*time.Hour))
	await(t, other, "between", "third")
	text, _, err := s.BothFollowers().FollowerPosition(t.Context(), expiry.Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.BothFollowers().MoveFollower(t.Context(), expiry.Name, 2, text); !errors.Is(err, link.ErrConflict) {
		t.Errorf("the paused server moves the position: %v", err)
	}
}

// pausing is the store of a server that is paused when it first moves the position.
type pausing struct {
	Store

	paused, resume chan struct{}
	once           sync.Once
}

func (s *pausing) BothFollowers() feed.Positions[link.Position] {
	return &pausingPositions{s.Store.BothFollowers(), s}
}

type pausingPositions struct {
	feed.Positions[link.Position]

	of *pausing
}

func (p *pausingPositions) MoveFollower(ctx context.Context, name string, fence uint64, to link.Position) error {
	p.of.once.Do(func() { close(p.of.paused) })
	<-p.of.resume
	return p.Positions.MoveFollower(context.WithoutCancel(ctx), name, fence, to)
}

// lateCommit: a link that becomes visible when the cursor has passed its end is announced.
func lateCommit(t *testing.T, h Harness) {
	s := h.Open(t)
	begin(t, s)
	create(t, s, ended(30, "copied", link.Counted, 30*time.Minute))
	commit := h.Late(t, s, "copied", "late001")
	create(t, s, ended(31, "passed", link.Counted, 20*time.Minute))
	start(t, s, 2)
	await(t, s, "copied", "passed")
	commit()
	await(t, s, "late001")
}
