package link_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/link/linktest"
)

// together is a store that can be asked for many at once, and counts how often.
type together struct {
	link.Store

	asked []int
	err   error
}

func (s *together) GetMany(_ context.Context, keys []link.Key) ([]link.Link, error) {
	s.asked = append(s.asked, len(keys))
	if s.err != nil {
		return nil, s.err
	}
	links := make([]link.Link, len(keys))
	for i, k := range keys {
		if k.Code != "none" {
			links[i] = link.Link{Key: k}
		}
	}
	return links, nil
}

func TestGetManyAsksInAsFewQuestionsAsItMay(t *testing.T) {
	keys := make([]link.Key, 2*link.MaxPage+1)
	for i := range keys {
		keys[i].Code = link.Code("code" + strconv.Itoa(i))
	}
	keys[3].Code = "none"
	s := &together{}
	links, err := link.GetMany(t.Context(), s, keys)
	if err != nil || len(links) != len(keys) || len(s.asked) != 3 {
		t.Fatalf("%d links of %d in questions of %d keys, %v", len(links), len(keys), s.asked, err)
	}
	for i, l := range links {
		if i == 3 && !l.ID.IsZero() || i != 3 && l.Key != keys[i] {
			t.Errorf("link %d is %v", i, l.Key)
		}
	}
	s.err = link.ErrUnavailable
	if links, err := link.GetMany(t.Context(), s, keys); !errors.Is(err, link.ErrUnavailable) || links != nil {
		t.Errorf("a store that is away: %d links, %v", len(links), err)
	}
}

// A store that knows single questions only is asked for each.
func TestGetManyOfAStoreOfSingleQuestions(t *testing.T) {
	s := linktest.NewMemory()
	stored, err := s.Create(t.Context(), valid())
	if err != nil {
		t.Fatal(err)
	}
	var away error
	one := linktest.WithFaults(s, func(linktest.Op, link.Key) (bool, error) { return away == nil, away })
	if _, ok := one.(link.ManyGetter); ok {
		t.Fatal("the store of this test can be asked for many")
	}
	links, err := link.GetMany(t.Context(), one, []link.Key{{Code: "none"}, stored.Key})
	if err != nil || len(links) != 2 || !links[0].ID.IsZero() || links[1].ID != stored.ID {
		t.Errorf("%v, %v", links, err)
	}
	away = link.ErrUnavailable
	if links, err := link.GetMany(t.Context(), one, []link.Key{stored.Key}); !errors.Is(err, away) || links != nil {
		t.Errorf("a store that is away: %d links, %v", len(links), err)
	}
}

// Who deletes by the status alone leaves the erasing to the store, and recognises it.
func TestUpdateRecognisesWhatTheStoreErased(t *testing.T) {
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
		l.Status, l.Updated = link.Deleted, day.Add(time.Hour)
		return nil
	})
	if err != nil || got.Status != link.Deleted || got.Version != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A link that stands in for another answers alike; every respect counts.
func TestOnlyAnEqualLinkStandsIn(t *testing.T) {
	if !valid().Equivalent(valid(), day) {
		t.Fatal("a link does not stand in for its twin")
	}
	for name, differ := range map[string]func(have, want *link.Link){
		"workspace":   func(have, _ *link.Link) { have.Workspace = "other" },
		"domain":      func(have, _ *link.Link) { have.Key.Domain = "other.example" },
		"destination": func(have, _ *link.Link) { have.Destination += "x" },
		"redirect":    func(have, _ *link.Link) { have.Redirect = 301 },
		"start":       func(have, _ *link.Link) { have.Starts = day },
		"fallback":    func(have, _ *link.Link) { have.Fallback = "https://other.example/" },
		"query":       func(have, _ *link.Link) { have.ForwardQuery = true },
		"expired":     func(have, want *link.Link) { have.Expires, want.Expires = day, day },
		"bound":       func(have, want *link.Link) { have.MaxClicks, want.MaxClicks = 3, 3 },
		"disabled":    func(have, want *link.Link) { have.Status, want.Status = link.Disabled, link.Disabled },
		"warned":      func(have, want *link.Link) { have.Safety, want.Safety = link.Warn, link.Warn },
	} {
		have, want := valid(), valid()
		if differ(&have, &want); have.Equivalent(want, day) {
			t.Errorf("%s: it stands in", name)
		}
	}
	for name, same := range map[string]func(have, want *link.Link){
		"version": func(have, _ *link.Link) { have.Version = 7 },
		"title":   func(have, _ *link.Link) { have.Title, have.Tags, have.CreatedBy = "t", []string{"t"}, "somebody" },
		"not expired yet": func(have, want *link.Link) {
			have.Expires, want.Expires = day.Add(time.Millisecond), day.Add(time.Millisecond)
		},
	} {
		have, want := valid(), valid()
		if same(&have, &want); !have.Equivalent(want, day) {
			t.Errorf("%s: it does not stand in", name)
		}
	}
}

// Prepared answers are for those that are always the same.
func TestPlainTargets(t *testing.T) {
	if !valid().Target().Plain() {
		t.Fatal("a link without anything special is not plain")
	}
	for name, change := range map[string]func(*link.Target){
		"disabled":  func(l *link.Target) { l.Status = link.Disabled },
		"warned":    func(l *link.Target) { l.Safety = link.Warn },
		"a circle":  func(l *link.Target) { l.Loops = true },
		"a bound":   func(l *link.Target) { l.Limited = true },
		"the query": func(l *link.Target) { l.ForwardQuery = true },
	} {
		target := valid().Target()
		if change(&target); target.Plain() {
			t.Errorf("%s: it is plain", name)
		}
	}
}
