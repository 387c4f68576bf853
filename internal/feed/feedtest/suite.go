// Package feedtest proves logs that package feed follows, and where their followers' positions are.
package feedtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"curt/internal/feed"
	"curt/internal/joblease"
	"curt/internal/joblease/jobleasetest"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// Store is a store of links whose change log a fleet follows.
type Store interface {
	link.Store
	link.EventLog
	link.CreateLog
	link.Batcher

	Followers() feed.Positions[link.Position]
	CreateFollowers() feed.Positions[link.Position]
	BothFollowers() feed.Positions[link.Position]
}

// Harness is what a store gives to the suite.
type Harness struct {
	// Open returns an empty store that keeps so many entries, and more for followers within
	// bounds; 0 and the zero value are the defaults. It is closed with the test.
	Open func(t testing.TB, changes int64, bounds link.LogBounds) Store
	// Again returns a second handle on its data, as another process would have it; nil = there is
	// one process.
	Again func(t testing.TB, s Store) Store
	// Trim shortens the log, which has one partition, to what is kept of it; nil = it keeps all.
	Trim func(t testing.TB, s Store)
	// Late begins a write that appends and is not committed, and returns what commits it; nil = a
	// store with one writer.
	Late func(t testing.TB, s Store) (commit func())
	// LateCreate does so with a create of a counted code, of which there is one already.
	LateCreate func(t testing.TB, s Store) (commit func())
	// KeepsCreates: creates are never trimmed.
	KeepsCreates bool
	// Foreign is a position of creates in another database.
	Foreign link.Position
}

// Run proves a store.
func Run(t *testing.T, h Harness) {
	t.Run("order", func(t *testing.T) { order(t, h) })
	if h.Late != nil {
		t.Run("late commit", func(t *testing.T) { late(t, h) })
	}
	t.Run("killed before its position", func(t *testing.T) { killed(t, h) })
	t.Run("two holders", func(t *testing.T) { holders(t, h, Store.Followers) })
	t.Run("two holders of creates", func(t *testing.T) { holders(t, h, Store.CreateFollowers) })
	t.Run("followers of both", func(t *testing.T) { followsBoth(t, h) })
	if h.Trim != nil {
		t.Run("trimming", func(t *testing.T) { trimming(t, h) })
		t.Run("bounds", func(t *testing.T) { bounds(t, h) })
		if !h.KeepsCreates {
			t.Run("creates that are kept", func(t *testing.T) { createsKept(t, h) })
		}
	}
	t.Run("creates", func(t *testing.T) { creates(t, h) })
	t.Run("creates that ended", func(t *testing.T) { createsEnded(t, h) })
	if h.LateCreate != nil {
		t.Run("a create that commits late", func(t *testing.T) { lateCreate(t, h) })
	}
}

func handles(t testing.TB, h Harness, changes int64, b link.LogBounds) [2]Store {
	t.Helper()
	s := h.Open(t, changes, b)
	if h.Again == nil {
		return [2]Store{s, s}
	}
	return [2]Store{s, h.Again(t, s)}
}

func logOf(s Store) feed.Log[link.Position, link.Event] {
	return feed.Log[link.Position, link.Event]{Read: s.Events, Head: s.Head}
}

// create makes a link with a chosen code, which is one entry.
func create(t testing.TB, s link.Store, n int) link.Link {
	t.Helper()
	l, err := s.Create(t.Context(), linktest.Chosen(n, link.Code(fmt.Sprintf("feed-%d", n))))
	if err != nil {
		t.Error(err)
	}
	return l
}

// Heard is what a follower was told.
type Heard struct {
	at   link.Heads
	last map[partitioned]link.Version
	errs []error
	all  []link.Event
}

// partitioned is a key in a partition.
type partitioned struct {
	partition uint16
	key       link.Key
}

// Take notes entries, and what is wrong with their order within a partition.
func (h *Heard) Take(page []link.Event) {
	if h.last == nil {
		h.last = map[partitioned]link.Version{}
	}
	for _, e := range page {
		in, at := partitioned{e.Partition, e.Key}, h.at.At(e.Partition)
		if e.Sequence != at+1 {
			h.errs = append(h.errs, fmt.Errorf("entry %d of partition %d came after %d", e.Sequence, e.Partition, at))
		}
		if e.Version <= h.last[in] {
			h.errs = append(h.errs, fmt.Errorf("version %d of %s came after %d", e.Version, e.Key, h.last[in]))
		}
		h.at, h.last[in] = h.at.Set(e.Partition, e.Sequence), e.Version
	}
	h.all = append(h.all, page...)
}

// Latest returns what was heard last of each key, by its version.
func (h *Heard) Latest() map[link.Key]link.Version {
	latest := map[link.Key]link.Version{}
	for in, v := range h.last {
		latest[in.key] = max(latest[in.key], v)
	}
	return latest
}

// Err says what was wrong with the order, or which versions are missing.
func (h *Heard) Err() error {
	times := map[link.Key]link.Version{}
	for i := range h.all {
		times[h.all[i].Key]++
	}
	err := errors.Join(h.errs...)
	for k, v := range h.Latest() {
		if times[k] != v {
			err = errors.Join(err, fmt.Errorf("%d entries of %s up to version %d", times[k], k, v))
		}
	}
	return err
}

// order: a follower beside writers on all handles hears of each write once, in order, without a
// hole, and of each link in the order of its versions, but where it moved between partitions.
func order(t *testing.T, h Harness) {
	const writers, links, changes = 4, 10, 5
	stores := handles(t, h, 0, link.LogBounds{})
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range links {
				l := create(t, stores[w%2], w*links+i)
				for range changes {
					_, err := link.Update(t.Context(), stores[w%2], l.Key, "me", func(l *link.Link) error { l.Title += "x"; return nil })
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writing.Wait(); close(done) }()
	var heard Heard
	f := follower(stores[1], &heard)
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		if err := f.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := heard.Err(); err != nil || len(heard.all) != writers*links*(1+changes) {
		t.Errorf("%d entries, %v", len(heard.all), err)
	}
}

// follower keeps its position in what it heard.
func follower(s Store, h *Heard) *feed.Follower[link.Position, link.Event] {
	return &feed.Follower[link.Position, link.Event]{
		Name: "test", Log: logOf(s), Page: 7,
		Position: func(context.Context) (link.Position, bool, error) { return h.at.Position(), true, nil },
		Apply: func(_ context.Context, page []link.Event, to link.Position) error {
			if h.Take(page); h.at.Position() != to {
				h.errs = append(h.errs, fmt.Errorf("entries up to %s end at %s", h.at.Position(), to))
			}
			return nil
		},
		Rebuild: func(context.Context) error { return errors.New("entries were lost") },
	}
}

// late: a write that commits late is not passed over.
func late(t *testing.T, h Harness) {
	stores := handles(t, h, 0, link.LogBounds{})
	create(t, stores[0], 1)
	commit := h.Late(t, stores[0])
	created := make(chan struct{})
	go func() { create(t, stores[1], 2); close(created) }() // may have to wait for the other
	var heard Heard
	f := follower(stores[1], &heard)
	for range 20 {
		if err := f.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	commit()
	<-created
	if err := f.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := heard.Err(); err != nil || len(heard.all) != 3 {
		t.Errorf("%d entries, %v", len(heard.all), err)
	}
}

// fleet is a follower of a fleet whose effects stand in heard.
func fleet(s Store, leases joblease.Store, holder string, apply func(ctx context.Context, page []link.Event, fence uint64) error, rebuilt func()) *feed.Fleet[link.Position, link.Event] {
	return &feed.Fleet[link.Position, link.Event]{
		Name: "fleet", Log: logOf(s), Page: 3, Positions: s.Followers(), Apply: apply,
		Rebuild: func(context.Context, uint64) error { rebuilt(); return nil },
		Once:    joblease.Once{Store: leases, Holder: holder, Log: slog.New(slog.DiscardHandler)},
		Every:   time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}
}

// killed: a follower that ends between the effect and the position gets the same entries again, and
// none is missing.
func killed(t *testing.T, h Harness) {
	stores, leases := handles(t, h, 0, link.LogBounds{}), jobleasetest.NewMemory()
	if err := stores[0].Followers().MoveFollower(t.Context(), "fleet", 0, ""); err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		create(t, stores[0], n)
	}
	seen := map[link.Change]int{}
	for round := 0; len(seen) < 10; round++ {
		if round > 100 {
			t.Fatalf("%d entries after %d rounds", len(seen), round)
		}
		ctx, kill := context.WithCancel(t.Context())
		f := fleet(stores[round%2], leases, "a", func(_ context.Context, page []link.Event, _ uint64) error {
			for _, e := range page {
				seen[e.Change]++
			}
			if round%2 == 0 || len(seen) == 10 {
				kill() // before the position is kept
			}
			return nil
		}, func() { t.Error("it began anew") })
		if err := f.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		kill()
	}
	twice := 0
	for _, times := range seen {
		if times > 1 {
			twice++
		}
	}
	if twice == 0 {
		t.Error("no entry came twice: the follower was never killed between effect and position")
	}
}

// holders: of two holders, the one that was paused keeps no position.
func holders(t *testing.T, h Harness, of func(Store) feed.Positions[link.Position]) {
	stores := handles(t, h, 0, link.LogBounds{})
	move := func(i int, fence uint64, to link.Sequence) error {
		return of(stores[i]).MoveFollower(t.Context(), "fleet", fence, to.Position())
	}
	if _, begun, err := of(stores[0]).FollowerPosition(t.Context(), "fleet"); begun || err != nil {
		t.Fatalf("a follower that never was has begun: %v, %v", begun, err)
	}
	for _, step := range []struct {
		holder int
		fence  uint64
		to     link.Sequence
		want   error
		at     link.Sequence
	}{
		{0, 1, 5, nil, 5},
		{0, 1, 6, nil, 6},
		{1, 2, 6, nil, 6}, // the successor, and the first goes on
		{0, 1, 9, link.ErrConflict, 6},
		{1, 2, 8, nil, 8},
		{1, 2, 7, nil, 7},
		{0, 1, 9, link.ErrConflict, 7},
	} {
		if err := move(step.holder, step.fence, step.to); !errors.Is(err, step.want) || (err == nil) != (step.want == nil) {
			t.Errorf("%+v: %v", step, err)
		}
		if at, begun, err := of(stores[1-step.holder]).FollowerPosition(t.Context(), "fleet"); at != step.at.Position() || !begun || err != nil {
			t.Errorf("%+v: at %s, %v, %v", step, at, begun, err)
		}
	}
	for range 2 {
		if err := of(stores[0]).ForgetFollower(t.Context(), "fleet"); err != nil {
			t.Error(err)
		}
	}
	if _, begun, err := of(stores[1]).FollowerPosition(t.Context(), "fleet"); begun || err != nil {
		t.Errorf("a follower that was forgotten: %v, %v", begun, err)
	}
}

// trimming: what a follower has not read is kept, what all have read goes, and one that was
// overtaken begins anew.
func trimming(t *testing.T, h Harness) {
	const entries = 40
	stores := handles(t, h, 5, link.LogBounds{Age: time.Hour, Bytes: 1 << 20})
	for n := range entries {
		create(t, stores[0], n)
	}
	if err := stores[0].Followers().MoveFollower(t.Context(), "slow", 1, "10"); err != nil {
		t.Fatal(err)
	}
	if err := stores[0].Followers().MoveFollower(t.Context(), "fast", 1, link.Sequence(entries).Position()); err != nil {
		t.Fatal(err)
	}
	h.Trim(t, stores[0])
	first(t, stores[1], 11)
	if err := stores[0].Followers().MoveFollower(t.Context(), "slow", 1, "20"); err != nil {
		t.Fatal(err)
	}
	h.Trim(t, stores[0])
	first(t, stores[1], 21)
	if err := stores[0].Followers().ForgetFollower(t.Context(), "slow"); err != nil {
		t.Fatal(err)
	}
	h.Trim(t, stores[0])
	first(t, stores[1], entries-5+1)
	// One that comes back with a position that is gone.
	if err := stores[0].Followers().MoveFollower(t.Context(), "fleet", 0, "20"); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	rebuilt := 0
	f := fleet(stores[1], jobleasetest.NewMemory(), "a", func(_ context.Context, page []link.Event, _ uint64) error {
		t.Errorf("it was told %d entries after a hole", len(page))
		return nil
	}, func() { rebuilt++ })
	f.Positions = ending{stores[1].Followers(), end}
	if err := f.Run(ctx); !errors.Is(err, context.Canceled) || rebuilt != 1 {
		t.Errorf("%v; it began anew %d times", err, rebuilt)
	}
	if at, _, err := stores[0].Followers().FollowerPosition(t.Context(), "fleet"); err != nil || at != link.Sequence(entries).Position() {
		t.Errorf("it stands at %s, %v", at, err)
	}
}

// ending ends the test when a position was kept.
type ending struct {
	feed.Positions[link.Position]
	end func()
}

func (e ending) MoveFollower(ctx context.Context, name string, fence uint64, to link.Position) error {
	defer e.end()
	return e.Positions.MoveFollower(ctx, name, fence, to)
}

// bounds: a follower that never reads keeps no more than the bounds say, by age and by size.
func bounds(t *testing.T, h Harness) {
	for name, b := range map[string]link.LogBounds{
		"age":  {Age: -time.Hour, Bytes: 1 << 20}, // what is older than an hour from now: all
		"size": {Age: time.Hour, Bytes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			stores := handles(t, h, 5, b)
			for n := range 20 {
				create(t, stores[0], n)
			}
			if err := stores[0].Followers().MoveFollower(t.Context(), "dead", 1, "2"); err != nil {
				t.Fatal(err)
			}
			h.Trim(t, stores[0])
			first(t, stores[0], 16)
		})
	}
}

// first fails unless the log begins with an entry.
func first(t testing.TB, s Store, want link.Sequence) {
	t.Helper()
	if got, _, err := s.Events(t.Context(), (want - 1).Position(), 1); err != nil || len(got) != 1 || got[0].Sequence != want {
		t.Errorf("entry %d: %v, %v", want, got, err)
	}
	if _, _, err := s.Events(t.Context(), (want - 2).Position(), 1); !errors.Is(err, link.ErrConflict) {
		t.Errorf("entry %d is still there: %v", want-1, err)
	}
	if _, next, more, err := s.ExpiryChanges(t.Context(), (want - 1).Position(), 1); err != nil || next != want.Position() || !more {
		t.Errorf("entry %d ends at %q, %v, %v", want, next, more, err)
	}
	if _, _, _, err := s.ExpiryChanges(t.Context(), (want - 2).Position(), 1); !errors.Is(err, link.ErrConflict) {
		t.Errorf("who looks for links that expire is not told that entry %d is gone: %v", want-1, err)
	}
}
