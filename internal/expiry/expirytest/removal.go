package expirytest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"curt/internal/link"
)

const retention = 24 * time.Hour

// purge removes content until the test says that it is done.
func purge(t testing.TB, s Store, fence uint64, done func(announced []link.Change) bool) (announced []link.Change) {
	t.Helper()
	var mu sync.Mutex
	_, stop := startRemoving(t, s, fence, retention, func(c link.Change) { mu.Lock(); defer mu.Unlock(); announced = append(announced, c) })
	sofar := func() []link.Change { mu.Lock(); defer mu.Unlock(); return slices.Clone(announced) }
	for end := time.Now().Add(time.Minute); !done(sofar()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the content is not removed")
		}
	}
	stop()
	return announced
}

// removed reports whether the content of links was removed.
func removed(t testing.TB, s Store, codes ...link.Code) bool {
	t.Helper()
	for _, code := range codes {
		if l, err := s.Get(t.Context(), link.Key{Code: code}); err != nil || !l.ContentRemoved() {
			return false
		}
	}
	return true
}

// outage: links that expired while no server announced any are announced before they lose their content,
// also behind kills before and after each step: those ahead of the cursor, and those behind it, which
// only the logs have.
func outage(t *testing.T, h Harness) {
	s := h.Open(t)
	begin(t, s)
	isAnnouncedBeforeRemoval(t, s)
}

// outageBehindTransaction: so they are while a transaction is open, which the log of creates ends at.
func outageBehindTransaction(t *testing.T, h Harness) {
	s := h.Open(t)
	begin(t, s)
	create(t, s, ended(30, "copied", link.Counted, time.Minute))
	commit := h.Late(t, s, "copied", "late001")
	isAnnouncedBeforeRemoval(t, s)
	commit()
}

func isAnnouncedBeforeRemoval(t *testing.T, s Store) {
	t.Helper()
	fence := uint64(1)
	var codes []link.Code
	for n := 0; ; n++ {
		ahead, behind, chosen := link.Code(fmt.Sprintf("ahead%03d", n)), link.Code(fmt.Sprintf("behind%03d", n)), link.Code(fmt.Sprintf("chosen%03d", n))
		create(t, s, ended(1000+10*n, ahead, link.Counted, retention+10*time.Minute-time.Duration(n)*time.Second))
		create(t, s, ended(1001+10*n, behind, link.Counted, retention+time.Hour))
		create(t, s, ended(1002+10*n, chosen, link.Chosen, retention+time.Hour))
		codes = append(codes, ahead, behind, chosen)
		killed := make(chan struct{})
		var once sync.Once
		victim := &stopped{Store: s, left: new(atomic.Int64), reads: new(atomic.Int64), kill: func() { once.Do(func() { close(killed) }) }}
		victim.left.Store(int64(n))
		met := false
		fence++
		purge(t, victim, fence, func([]link.Change) bool {
			select {
			case <-killed:
				met = true
				return true
			default:
				return removed(t, s, codes...)
			}
		})
		fence++
		purge(t, s, fence, func([]link.Change) bool { return removed(t, s, codes...) })
		if !met {
			if n < 12 {
				t.Errorf("a turn has %d places only", n)
			}
			break
		}
	}
	announced := map[link.Code]bool{}
	events, _, err := s.Events(t.Context(), "", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		e := &events[i]
		for _, k := range e.Keys {
			announced[k.Code] = true
		}
		if e.Kind == link.WasDeleted && !announced[e.Key.Code] {
			t.Errorf("%s lost its content and was not announced", e.Key)
		}
	}
}

// removal: nothing of the content is left, in the link or in the log, and the code stays taken; only
// of links that expired before the retention began.
func removal(t *testing.T, h Harness) {
	s := h.Open(t)
	begin(t, s)
	old := create(t, s, ended(4, "old", link.Chosen, retention+time.Minute))
	update(t, s, "old", func(l *link.Link) { l.Destination, l.Title = "https://other.example/", "renamed" })
	create(t, s, ended(2, "young", link.Chosen, retention-time.Minute))
	disabled := ended(3, "disabled", link.Chosen, retention+time.Minute)
	disabled.Status = link.Disabled
	create(t, s, disabled)
	changes := purge(t, s, 2, func(sofar []link.Change) bool { // a removal is announced behind its answer
		return removed(t, s, "old") && len(sofar) > 0 && sofar[len(sofar)-1].Version > 0
	})
	l, err := s.Get(t.Context(), old.Key)
	want := link.Link{
		ID: old.ID, Key: old.Key, Workspace: old.Workspace, Status: link.Deleted, Safety: old.Safety, Redirect: old.Redirect,
		Expires: old.Expires, Created: old.Created, Updated: l.Updated, Version: 3,
	}
	if text, wanted := fmt.Sprintf("%+v", l), fmt.Sprintf("%+v", want); err != nil || text != wanted {
		t.Errorf("what is left is %s, %v, want %s", text, err, wanted)
	}
	if len(changes) == 0 || changes[len(changes)-1].Version == 0 {
		t.Errorf("announced %v", changes)
	}
	for _, code := range []link.Code{"young", "disabled"} {
		if l, err := s.Get(t.Context(), link.Key{Code: code}); err != nil || l.Destination == "" {
			t.Errorf("%s is %+v, %v", code, l, err)
		}
	}
	events, _, err := s.Events(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if e := &events[i]; e.Key == old.Key && (keepsContent(e) || e.Kind == link.WasDeleted && e.Principal != "retention") {
			t.Errorf("the log has %+v", e)
		}
	}
	if _, err := s.Create(t.Context(), ended(99, "old", link.Chosen, 0)); !errors.Is(err, link.ErrExists) {
		t.Errorf("the code was given out again: %v", err)
	}
}

// keepsContent reports whether an entry says more of a deleted link than which fields it was created with.
func keepsContent(e *link.Event) bool {
	return len(e.Fields) > 0 && e.Kind != link.WasCreated || slices.ContainsFunc(e.Fields, func(w link.Was) bool { return len(w.Old) > 0 })
}

// revival: of a change that gives a link another end and the removal of its content one wins, entirely.
func revival(t *testing.T, h Harness) {
	s := h.Open(t)
	other := s
	if h.Again != nil {
		other = h.Again(t, s)
	}
	const links = 60
	later := time.Now().UTC().Truncate(time.Millisecond).Add(time.Hour)
	for n := range links {
		create(t, s, ended(100+n, link.Code(fmt.Sprintf("race%02d", n)), link.Counted, retention+time.Duration(n+1)*time.Second))
	}
	errs := make([]error, links)
	var owners sync.WaitGroup
	owners.Go(func() {
		for n := range links {
			_, errs[n] = link.Update(t.Context(), other, link.Key{Code: link.Code(fmt.Sprintf("race%02d", n))}, "owner", func(l *link.Link) error {
				l.Expires = later
				return nil
			})
		}
	})
	purge(t, s, 1, func([]link.Change) bool {
		keys, _, err := s.Expired(t.Context(), "", time.Now(), 1)
		return err == nil && len(keys) == 0
	})
	owners.Wait()
	won := 0
	for n := range links {
		l, err := s.Get(t.Context(), link.Key{Code: link.Code(fmt.Sprintf("race%02d", n))})
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case errs[n] == nil && l.Status == link.Active && l.Expires.Equal(later) && l.Destination != "" && l.Version == 2:
			won++
		case errors.Is(errs[n], link.ErrNotFound) && l.ContentRemoved() && l.Destination == "" && l.Version == 2:
		default:
			t.Errorf("%v, and the link is %+v", errs[n], l)
		}
	}
	t.Logf("%d of %d owners won", won, links)
}
