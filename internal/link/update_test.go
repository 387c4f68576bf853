package link_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/link/linktest"
)

var errLost = errors.New("connection reset by peer")

// A Replace whose request was delayed lands after Update tried again: the change
// happens once, whichever of the two wins.
func TestUpdateWhenAnAttemptLandsLate(t *testing.T) {
	for _, sameBytes := range []bool{true, false} {
		s := linktest.NewMemory()
		stored, err := s.Create(t.Context(), valid())
		if err != nil {
			t.Fatal(err)
		}
		replaces := 0
		late := stored // as the first attempt wanted it
		wire := linktest.WithFaults(s, func(op linktest.Op, _ link.Key) (bool, error) {
			if op != linktest.OpReplace {
				return true, nil
			}
			replaces++
			if replaces == 1 {
				return false, errLost // under way, not there yet
			}
			if _, err := s.Replace(t.Context(), late, link.Edit{}); err != nil && replaces == 2 {
				t.Fatal(err)
			}
			return true, nil
		})
		calls := 0
		got, err := link.Update(t.Context(), wire, stored.Key, "tester", func(l *link.Link) error {
			calls++
			l.MaxClicks += 10
			if !sameBytes { // as Updated does in earnest
				l.Title = fmt.Sprint("try ", calls)
			}
			if calls == 1 {
				late = *l
			}
			return nil
		})
		if err != nil || got.MaxClicks != 10 || got.Version != 2 {
			t.Errorf("same bytes %t: %d clicks at version %d after %d calls, %v", sameBytes, got.MaxClicks, got.Version, calls, err)
		}
	}
}

// A rival that wins the version of a lost attempt does not stand for it.
func TestUpdateTellsARivalFromItself(t *testing.T) {
	s := linktest.NewMemory()
	stored, err := s.Create(t.Context(), valid())
	if err != nil {
		t.Fatal(err)
	}
	lost := false
	wire := linktest.WithFaults(s, func(op linktest.Op, _ link.Key) (bool, error) {
		if op != linktest.OpReplace || lost {
			return true, nil
		}
		lost = true
		rival := stored
		rival.Title = "rival"
		if _, err := s.Replace(t.Context(), rival, link.Edit{}); err != nil {
			t.Fatal(err)
		}
		return false, errLost
	})
	got, err := link.Update(t.Context(), wire, stored.Key, "tester", func(l *link.Link) error { l.MaxClicks += 10; return nil })
	if err != nil || got.MaxClicks != 10 || got.Title != "rival" || got.Version != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A rival that stored the very same bytes cannot be told from the attempt whose answer was
// lost: both succeed, and one version came of it.
func TestUpdateTakesItsTwinForItself(t *testing.T) {
	s := linktest.NewMemory()
	stored, err := s.Create(t.Context(), valid())
	if err != nil {
		t.Fatal(err)
	}
	off := func(l *link.Link) error {
		if l.Version != stored.Version {
			return errOther
		}
		l.Status, l.Updated = link.Disabled, day
		return nil
	}
	wire := linktest.WithFaults(s, func(op linktest.Op, _ link.Key) (bool, error) {
		if op != linktest.OpReplace {
			return true, nil
		}
		if _, err := link.Update(t.Context(), s, stored.Key, "tester", off); err != nil {
			t.Errorf("the twin: %v", err)
		}
		return false, errLost
	})
	got, err := link.Update(t.Context(), wire, stored.Key, "tester", off)
	if err != nil || got.Status != link.Disabled || got.Version != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

var errOther = errors.New("another version")

// Deleting over a broken wire is recognised too, though the store erases the content.
func TestUpdateRecognisesItsTombstone(t *testing.T) {
	s := linktest.NewMemory()
	l := valid()
	l.Title, l.Tags = "gone soon", []string{"a"}
	stored, err := s.Create(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	wire := linktest.WithFaults(s, func(op linktest.Op, _ link.Key) (bool, error) {
		if op == linktest.OpReplace {
			return true, errLost
		}
		return true, nil
	})
	got, err := link.Update(t.Context(), wire, stored.Key, "tester", func(l *link.Link) error {
		*l = l.Tombstone(day.Add(time.Hour))
		return nil
	})
	if err != nil || got.Status != link.Deleted || got.Version != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// An attempt whose answer was lost may have happened, whatever else fails before that is known: callers take
// ErrUnavailable and its like for a write that did not.
func TestUpdateThatEndsInDoubtIsUncertain(t *testing.T) {
	for name, then := range map[string]struct{ get, replace, wanted error }{
		"the next read fails":                   {get: link.ErrUnavailable},
		"the next read says there is none":      {get: link.ErrNotFound},
		"the next attempt is refused":           {replace: link.ErrUnavailable},
		"the next attempt has no room":          {replace: link.ErrFull},
		"the caller wants it no more":           {wanted: errOther},
		"each attempt after it loses its round": {replace: link.ErrConflict},
	} {
		s := linktest.NewMemory()
		stored, err := s.Create(t.Context(), valid())
		if err != nil {
			t.Fatal(err)
		}
		lost := false
		wire := linktest.WithFaults(s, func(op linktest.Op, _ link.Key) (bool, error) {
			switch {
			case op == linktest.OpReplace && !lost:
				lost = true
				return false, errLost
			case op == linktest.OpReplace && then.replace != nil:
				return false, then.replace
			case op == linktest.OpGet && lost && then.get != nil:
				return false, then.get
			}
			return true, nil
		})
		_, err = link.Update(t.Context(), wire, stored.Key, "tester", func(l *link.Link) error {
			l.Title = "other"
			if lost {
				return then.wanted
			}
			return nil
		})
		if !errors.Is(err, link.ErrUncertain) || !errors.Is(err, errLost) || errors.Is(err, link.ErrUnavailable) || errors.Is(err, link.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a refused Replace says is said once, without a second try.
func TestUpdateStopsWhereNothingHappened(t *testing.T) {
	for _, refusal := range []error{link.ErrUnavailable, link.ErrFull, link.ErrInvalid, link.ErrNotFound} {
		s := linktest.NewMemory()
		stored, err := s.Create(t.Context(), valid())
		if err != nil {
			t.Fatal(err)
		}
		tries := 0
		wire := linktest.WithFaults(s, func(op linktest.Op, _ link.Key) (bool, error) {
			if op == linktest.OpReplace {
				tries++
				return false, refusal
			}
			return true, nil
		})
		_, err = link.Update(t.Context(), wire, stored.Key, "tester", func(*link.Link) error { return nil })
		if !errors.Is(err, refusal) || tries != 1 {
			t.Errorf("%v: %v after %d tries", refusal, err, tries)
		}
	}
}
