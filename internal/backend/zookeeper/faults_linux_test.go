package zookeeper_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"curt/internal/codegen"
	"curt/internal/codegen/codegentest"
	"curt/internal/link"
	"curt/internal/testkit"
)

// leased are the ranges that callers were given.
type leased struct {
	mu  sync.Mutex
	all [][2]uint64 // first and end; guarded by mu
}

func (l *leased) add(first, n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, [2]uint64{first, first + n})
}

// overlaps returns how many ranges begin before another one's end.
func (l *leased) overlaps() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortFunc(l.all, func(a, b [2]uint64) int { return int(int64(a[0]) - int64(b[0])) })
	for i := 1; i < len(l.all); i++ {
		if l.all[i][0] < l.all[i-1][1] {
			n++
		}
	}
	return n
}

func (l *leased) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// keep leases from each until the returned function is called.
func keep(t *testing.T, from ...codegen.Leaser) (got *leased, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	got = &leased{}
	var wg sync.WaitGroup
	for i, l := range from {
		wg.Go(func() {
			for n := uint64(i%7 + 1); ctx.Err() == nil; n = n%13 + 1 {
				first, err := l.Lease(ctx, "codes-7", n)
				switch {
				case err == nil:
					got.add(first, n)
				case !errors.Is(err, link.ErrUnavailable):
					t.Errorf("Lease: %v; want ErrUnavailable", err)
				}
			}
		})
	}
	return got, sync.OnceFunc(func() {
		cancel()
		wg.Wait()
	})
}

// until waits for what other goroutines bring about.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// more waits until ranges were leased since now.
func (l *leased) more(t *testing.T) {
	t.Helper()
	before := l.len()
	until(t, "further leases", func() bool { return l.len() >= before+50 })
}

// TestExpiredSessions cuts a process off until its session has expired, while others lease: no id is leased twice, and
// it goes on by itself.
func TestExpiredSessions(t *testing.T) {
	testkit.Faults(t)
	expire(t, testkit.StartZooKeeper(t), "")
}

func expire(t *testing.T, server *testkit.ZooKeeper, query string) {
	t.Helper()
	spoiled := testkit.SpoilZooKeeper(t, server)
	cut := connected(t, spoiled.URL("/curt")+query) // which others could be ahead of by all the leases that are waited for
	got, stop := keep(t, cut, cut, open(t, server.URL("/curt")+query))
	defer stop()
	for name, spoil := range map[string]func(on bool){
		"refused": func(on bool) { spoiled.Refuse(t, on) },
		"silent":  func(on bool) { spoiled.Silent(t, on) },
	} {
		got.more(t)
		before, after := cut.Session(), int64(0)
		for asleep := 6 * time.Second; ; asleep *= 2 { // longer than a session; the server says nothing of its end, which may be late
			spoil(true)
			until(t, "a lost session", func() bool { return cut.Healthy() != nil })
			time.Sleep(asleep)
			spoil(false)
			until(t, "a session after "+name, func() bool { return cut.Healthy() == nil })
			if after = cut.Session(); after != before || asleep > time.Minute {
				break
			}
		}
		if before == 0 || after == before {
			t.Errorf("%s: the session did not expire", name)
		}
		until(t, "a lease in a new session", func() bool {
			_, err := cut.Lease(t.Context(), "codes-7", 1)
			if err != nil && !errors.Is(err, link.ErrUnavailable) {
				t.Fatalf("%s: the first lease in a new session: %v", name, err)
			}
			return err == nil
		})
	}
	got.more(t)
	stop()
	if n := got.overlaps(); n > 0 {
		t.Errorf("%d of %d ranges overlap", n, got.len())
	}
}

// TestKilledServer kills ZooKeeper in the middle of leases, so that answers to writes that happened are lost.
func TestKilledServer(t *testing.T) {
	testkit.Faults(t)
	server := testkit.StartZooKeeper(t)
	var from []codegen.Leaser
	for range 4 {
		l := open(t, server.URL("/curt"))
		from = append(from, l, l)
	}
	got, stop := keep(t, from...)
	defer stop()
	for range 10 {
		got.more(t)
		server.Kill(t)
		server.Again(t)
	}
	got.more(t)
	stop()
	mark, err := from[0].Leased(t.Context(), "codes-7")
	if n := got.overlaps(); n > 0 || err != nil || mark < got.all[len(got.all)-1][1] {
		t.Errorf("%d of %d ranges overlap; mark %d, %v", n, got.len(), mark, err)
	}
}

// TestKilledMembers kills the members of an ensemble of three in turn, the leader among them: leases go on. With one of three they
// are refused, and go on when a second is there. No id is leased twice.
func TestKilledMembers(t *testing.T) {
	testkit.Faults(t)
	members := testkit.StartZooKeeperEnsemble(t)
	url := "zookeeper://" + members[0].Address + "," + members[1].Address + "," + members[2].Address + "/curt"
	var from []codegen.Leaser
	for range 3 {
		l := open(t, url)
		from = append(from, l, l)
	}
	got, stop := keep(t, from...)
	defer stop()
	for i := range members {
		got.more(t)
		members[i].Kill(t)
		got.more(t)
		members[i].Again(t)
	}
	members[0].Kill(t)
	members[2].Kill(t)
	until(t, "a refusal without a majority", func() bool {
		_, err := from[0].Lease(t.Context(), "codes-7", 1)
		return errors.Is(err, link.ErrUnavailable)
	})
	members[2].Again(t)
	got.more(t)
	stop()
	mark, err := from[0].Leased(t.Context(), "codes-7")
	if n := got.overlaps(); n > 0 || err != nil || mark < got.all[len(got.all)-1][1] {
		t.Errorf("%d of %d ranges overlap; mark %d, %v", n, got.len(), mark, err)
	}
}

// TestRestoredServer puts the state of ZooKeeper back to an earlier one, and to none at all: the store's counter keeps ids
// from being leased again. Without it they are, which is the control.
func TestRestoredServer(t *testing.T) {
	testkit.Faults(t)
	server, store := testkit.StartZooKeeper(t), codegentest.NewLeaser()
	one := codegen.NewConfirmed(open(t, server.URL("/confirmed")), store, slog.New(slog.NewTextHandler(t.Output(), nil)))
	two := codegen.NewConfirmed(open(t, server.URL("/confirmed")), store, nil)
	alone := open(t, server.URL("/alone"))
	got, control := &leased{}, &leased{}
	take := func() {
		for range 50 {
			for l, to := range map[codegen.Leaser]*leased{one: got, two: got, alone: control} {
				until(t, "a lease", func() bool {
					first, err := l.Lease(t.Context(), "codes-7", 1000)
					if err == nil {
						to.add(first, 1000)
					} else if !errors.Is(err, link.ErrUnavailable) {
						t.Fatal(err)
					}
					return err == nil
				})
			}
		}
	}
	data, kept := filepath.Join(server.Dir, "data"), filepath.Join(server.Dir, "kept")
	take()
	server.Kill(t)
	if err := os.CopyFS(kept, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	server.Again(t)
	take()
	for _, restore := range []func() error{
		func() error { return os.CopyFS(data, os.DirFS(kept)) },
		func() error { return nil },
	} {
		server.Kill(t)
		if err := errors.Join(os.RemoveAll(data), restore()); err != nil {
			t.Fatal(err)
		}
		server.Again(t)
		take()
	}
	if n := got.overlaps(); n > 0 || one.Corrections()+two.Corrections() != 2 {
		t.Errorf("%d of %d ranges overlap; ZooKeeper was moved %d times, want 0 and 2", n, got.len(), one.Corrections()+two.Corrections())
	}
	if control.overlaps() == 0 {
		t.Error("the state did not go back: no range overlaps without the store")
	}
	if got.all[len(got.all)-1][1] > 1000*1000 {
		t.Errorf("the last range ends at %d: more ids were lost than the lease that met the old state", got.all[len(got.all)-1][1])
	}
}
