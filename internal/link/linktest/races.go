package linktest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"curt/internal/link"
)

// oneWinner lets many callers over two handles create one key.
func oneWinner(t *testing.T, h Harness) {
	for _, code := range []link.Code{"Minted7", "an-alias"} {
		stores := handles(t, h)
		const callers = 16
		var won, lost atomic.Int64
		var wg sync.WaitGroup
		winner := make([]link.Link, callers)
		for i := range callers {
			wg.Go(func() {
				l := sample(i, code)
				l.CodeKind = Kind(i%2 == 0 && code == "Minted7") // an alias may have a counted code's shape
				stored, err := stores[i%2].Create(t.Context(), l)
				switch {
				case err == nil:
					won.Add(1)
					winner[i] = stored
				case errors.Is(err, link.ErrExists):
					lost.Add(1)
				default:
					t.Errorf("create: %v", err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || lost.Load() != callers-1 {
			t.Errorf("%s: %d won and %d lost of %d", code, won.Load(), lost.Load(), callers)
		}
		stored := mustGet(t, stores[0], link.Key{Code: code})
		if !slices.ContainsFunc(winner, func(l link.Link) bool { return cmp.Equal(l, stored) }) {
			t.Errorf("%s: what is stored is not what the winner got: %+v", code, stored)
		}
	}
}

// takeTurns creates counted codes and aliases over two handles, one after the other: what
// one remembers of the store is not what the other left.
func takeTurns(t *testing.T, h Harness) {
	stores := handles(t, h)
	for i := range 20 {
		l := sample(i, link.Code(fmt.Sprintf("turn-%d", i)))
		if l.CodeKind = Kind(i%3 == 0); l.CodeKind != link.Chosen {
			l.Key.Code = link.Code(fmt.Sprintf("Turn%03d", i))
		}
		mustCreate(t, stores[i%2], l)
		if got := mustGet(t, stores[1-i%2], l.Key); got.ID != l.ID {
			t.Errorf("%s: %+v", l.Key, got)
		}
	}
}

// swaps has many callers change one link at once.
func swaps(t *testing.T, h Harness) {
	t.Run("every change counts", func(t *testing.T) { compareAndSwap(t, h) })
	t.Run("one change of one version", func(t *testing.T) { oneUpdate(t, h) })
}

// compareAndSwap lets workers over two handles count up in one title.
func compareAndSwap(t *testing.T, h Harness) {
	const workers, increments = 6, 20
	stores := handles(t, h)
	shared := sample(1, "shared")
	shared.Title = "0"
	mustCreate(t, stores[0], shared)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			mine := sample(100+i, link.Code(fmt.Sprintf("mine%d", i)))
			mustCreate(t, stores[i%2], mine)
			for range increments {
				if _, err := link.Update(t.Context(), stores[i%2], shared.Key, "tester", increment); err != nil {
					t.Errorf("update: %v", err)
				}
				// What nobody else writes never conflicts.
				current := mustGet(t, stores[i%2], mine.Key)
				if _, err := stores[i%2].Replace(t.Context(), current, link.Edit{}); err != nil {
					t.Errorf("replace without a rival: %v", err)
				}
			}
		})
	}
	wg.Wait()
	got := mustGet(t, stores[1], shared.Key)
	if want := strconv.Itoa(workers * increments); got.Title != want || got.Version != workers*increments+1 {
		t.Errorf("counted to %s at version %d, want %s", got.Title, got.Version, want)
	}
}

// oneUpdate lets callers over two handles ask for the very same change of one version: one
// of them makes it, and each of the others hears that the version is another by now.
func oneUpdate(t *testing.T, h Harness) {
	const callers, rounds = 16, 5
	stores := handles(t, h)
	l := mustCreate(t, stores[0], sample(1, "shared"))
	for round := range rounds {
		replace := round%2 == 0 // by itself, or in Update's loop
		var won, lost atomic.Int64
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				err := changeOnce(t, stores[i%2], l, replace)
				switch {
				case err == nil:
					won.Add(1)
				case errors.Is(err, errOtherVersion), replace && errors.Is(err, link.ErrConflict):
					lost.Add(1)
				default:
					t.Errorf("change version %d: %v", l.Version, err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || lost.Load() != callers-1 {
			t.Errorf("version %d: %d won and %d lost of %d", l.Version, won.Load(), lost.Load(), callers)
		}
		before := l.Version
		if l = mustGet(t, stores[1], l.Key); l.Version != before+1 || l.Title != fmt.Sprint("after ", before) {
			t.Fatalf("version %d with the title %q came after %d", l.Version, l.Title, before)
		}
	}
}

var errOtherVersion = errors.New("the version is another")

// changeOnce changes a link if it has the version of l.
func changeOnce(t *testing.T, s link.Store, l link.Link, replace bool) (err error) {
	change := func(stored *link.Link) error {
		if stored.Version != l.Version {
			return errOtherVersion
		}
		stored.Title = fmt.Sprint("after ", l.Version)
		return nil
	}
	if !replace {
		_, err = link.Update(t.Context(), s, l.Key, "tester", change)
	} else if err = change(&l); err == nil {
		_, err = s.Replace(t.Context(), l, link.Edit{})
	}
	return err
}

func increment(l *link.Link) error {
	n, err := strconv.Atoi(l.Title)
	if err != nil {
		return fmt.Errorf("read the count: %w", err)
	}
	l.Title = strconv.Itoa(n + 1)
	return nil
}

var errLost = errors.New("connection reset by peer")

// lostAcknowledgement breaks the wire after and before writes.
func lostAcknowledgement(t *testing.T, h Harness) {
	t.Run("a create is retried", func(t *testing.T) { lostCreate(t, h) })
	t.Run("an update happens once", func(t *testing.T) { lostReplace(t, h) })
	t.Run("an update that others overtook is reported", func(t *testing.T) { overtaken(t, h) })
}

func lostCreate(t *testing.T, h Harness) {
	for _, applied := range []bool{true, false} {
		s, tries := h.Open(t), 0
		base := head(t, s)
		wire := WithFaults(s, func(op Op, _ link.Key) (bool, error) {
			if op == OpCreate && tries == 0 {
				tries++
				return applied, errLost
			}
			return true, nil
		})
		l := sample(1, "abcd")
		_, err := wire.Create(t.Context(), l)
		want(t, "create over a broken wire", err, errLost)
		stored := mustCreate(t, wire, l)
		l.Version = 1
		if diff := cmp.Diff(l, stored); diff != "" {
			t.Errorf("retried (-want +got):\n%s", diff)
		}
		if all := changesAfter(t, s, base); len(all) != 1 {
			t.Errorf("changes: %v", all)
		}
		if all := walkList(t, s, link.Filter{}, 10, func() {}); len(all) != 1 {
			t.Errorf("%d links", len(all))
		}
	}
}

// lostReplace loses every second acknowledgement or request of concurrent updates.
func lostReplace(t *testing.T, h Harness) {
	stores := handles(t, h)
	shared := sample(1, "shared")
	mustCreate(t, stores[0], shared)
	const workers, rounds = 4, 15
	var applied, ambiguous, lost atomic.Int64
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			n := 0
			wire := WithFaults(stores[i%2], func(op Op, _ link.Key) (bool, error) {
				if n++; op != OpReplace || n%4 < 2 {
					return true, nil
				}
				lost.Add(1)
				return n%4 == 2, errLost
			})
			for j := range rounds {
				_, err := link.Update(t.Context(), wire, shared.Key, "tester", func(l *link.Link) error {
					l.Tags = append(l.Tags[:min(len(l.Tags), link.MaxTags-1)], fmt.Sprintf("%d.%d", i, j))
					return nil
				})
				switch {
				case err == nil:
					applied.Add(1)
				case errors.Is(err, errLost):
					ambiguous.Add(1)
				default:
					t.Errorf("update: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if lost.Load() == 0 {
		t.Error("no acknowledgement was lost, so nothing was tried")
	}
	got := int64(mustGet(t, stores[0], shared.Key).Version) - 1
	if low, high := applied.Load(), applied.Load()+ambiguous.Load(); got < low || got > high {
		t.Errorf("%d changes happened; %d were answered, %d left open", got, low, high-low)
	}
}

// overtaken loses the acknowledgement of an update that another one then buries:
// Update cannot know, and must not do it twice.
func overtaken(t *testing.T, h Harness) {
	s := h.Open(t)
	l := mustCreate(t, s, sample(1, "abcd"))
	calls, broken := 0, false
	wire := WithFaults(s, func(op Op, k link.Key) (bool, error) {
		if op == OpGet && broken {
			other := mustGet(t, s, k)
			other.Title = "another"
			mustReplace(t, s, other)
		}
		if op == OpReplace {
			broken = true
			return true, errLost
		}
		return true, nil
	})
	_, err := link.Update(t.Context(), wire, l.Key, "tester", func(l *link.Link) error {
		calls++
		l.MaxClicks += 10
		return nil
	})
	want(t, "update", err, errLost)
	if got := mustGet(t, s, l.Key); calls != 1 || got.MaxClicks != 10 || got.Title != "another" {
		t.Errorf("%d calls left %+v", calls, got)
	}
}

// tombstones deletes a link and looks for what is left.
func tombstones(t *testing.T, h Harness) {
	for i, code := range []link.Code{"Minted7", "an-alias"} {
		ctx, stores := t.Context(), handles(t, h)
		l := extreme()
		l.Key, l.CodeKind, l.ID = link.Key{Code: code}, Kind(i == 0), idAt(1)
		l.Status, l.Safety = link.Active, link.Clean
		l = mustCreate(t, stores[0], l)
		content := l
		content.Status, content.Updated = link.Deleted, epoch
		dead := mustReplace(t, stores[0], content) // the store erases, whoever asks
		expected := l.WithoutContent(epoch)
		expected.Version = 2
		if got := l.Tombstone(epoch); !dead.ContentRemoved() || got.ContentRemoved() || !got.Expires.IsZero() {
			t.Errorf("a link that was deleted is %+v, one whose content was removed %+v", got, dead)
		}
		for name, got := range map[string]link.Link{"replaced": dead, "stored": mustGet(t, stores[1], l.Key)} {
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		target, err := settledLookup(t, h, stores[1], l.Key, func(g link.Target) bool { return g.Status == link.Deleted })
		if diff := cmp.Diff(expected.Target(), target); err != nil || diff != "" {
			t.Errorf("looked up: %v (-want +got):\n%s", err, diff)
		}
		if all := walkList(t, stores[1], link.Filter{}, 10, func() {}); len(all) != 0 {
			t.Errorf("listed: %v", all)
		}
		for _, counted := range []bool{true, false} {
			again := sample(2, code)
			again.CodeKind = Kind(counted)
			_, err = stores[1].Create(ctx, again)
			want(t, "create over a tombstone", err, link.ErrExists)
		}
		revived := l
		revived.Version = dead.Version
		_, err = stores[0].Replace(ctx, revived, link.Edit{})
		want(t, "replace a tombstone", err, link.ErrConflict)
		_, err = link.Update(ctx, stores[0], l.Key, "tester", func(*link.Link) error { return nil })
		want(t, "update a tombstone", err, link.ErrNotFound)
		if got := mustCreate(t, stores[1], l); !cmp.Equal(got, expected) { // a late retry of the create
			t.Errorf("retry of the create (-want +got):\n%s", cmp.Diff(expected, got))
		}
		stillborn := content // made as deleted, with its content
		stillborn.ID, stillborn.Key.Code = idAt(3), []link.Code{"Minted8", "stillborn"}[i]
		expected = stillborn.WithoutContent(stillborn.Updated)
		expected.Version = 1
		for name, got := range map[string]link.Link{"created": mustCreate(t, stores[0], stillborn), "stored": mustGet(t, stores[1], stillborn.Key)} {
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("%s as deleted (-want +got):\n%s", name, diff)
			}
		}
	}
}
