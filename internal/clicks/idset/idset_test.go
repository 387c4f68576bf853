package idset_test

import (
	"errors"
	"math"
	"testing"

	"curt/internal/clicks"
	"curt/internal/clicks/idset"
)

func TestIDs(t *testing.T) {
	s := idset.New(3)
	id := func(instance, sequence uint64) clicks.EventID {
		return clicks.EventID{Instance: instance, Sequence: sequence}
	}
	all := []clicks.EventID{id(1, 0), id(1, 63), id(1, 64), id(1, 1023), id(1, 1024), id(2, math.MaxUint64-1)}
	for _, id := range all {
		for _, want := range []bool{true, false} {
			if isNew, err := s.Add(id); err != nil || isNew != want {
				t.Errorf("add %v: %v, %v", id, isNew, err)
			}
		}
	}
	for _, id := range all {
		for _, want := range []bool{true, false} {
			if in, first := s.Meet(id); !in || first != want {
				t.Errorf("meet %v: %v, %v", id, in, first)
			}
		}
	}
	for _, id := range []clicks.EventID{id(1, 1), id(2, 0), id(3, 0)} {
		if in, _ := s.Meet(id); in || s.Has(id) {
			t.Errorf("%v was never added", id)
		}
	}
	if _, err := s.Add(id(3, 0)); !errors.Is(err, idset.ErrTooMany) {
		t.Errorf("a page too many: %v", err)
	}
}
