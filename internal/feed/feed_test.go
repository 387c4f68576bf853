package feed_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"curt/internal/feed"
	"curt/internal/link"
)

// numbers is a log of numbers, and a follower that keeps them.
type numbers struct {
	log     []int // the entry i has the position i+1
	trimmed int
	failing error

	kept    []int
	at      int
	begun   bool
	applies error
	rebuilt int
}

func (n *numbers) read(_ context.Context, after, most int) ([]int, error) {
	if n.failing != nil {
		return nil, n.failing
	}
	if after < n.trimmed {
		return nil, link.ErrConflict
	}
	from := min(after, len(n.log))
	return n.log[from:min(from+most, len(n.log))], nil
}

func (n *numbers) follower() *feed.Follower[int, int] {
	return &feed.Follower[int, int]{
		Name: "numbers", Page: 2,
		Log: feed.Log[int, int]{
			Read: n.read,
			Head: func(context.Context) (int, error) { return len(n.log), n.failing },
			At:   func(e *int) int { return slices.Index(n.log, *e) + 1 },
		},
		Position: func(context.Context) (int, bool, error) { return n.at, n.begun, nil },
		Apply: func(_ context.Context, page []int, to int) error {
			if n.applies != nil {
				return n.applies
			}
			n.kept, n.at = append(n.kept, page...), to
			return nil
		},
		Rebuild: func(context.Context) error {
			if n.failing != nil {
				return n.failing
			}
			n.rebuilt++
			n.at, n.begun, n.kept = len(n.log), true, slices.Clone(n.log)
			return nil
		},
	}
}

func (n *numbers) want(t *testing.T, err error, rebuilt int, kept ...int) {
	t.Helper()
	if err != nil || n.rebuilt != rebuilt || !slices.Equal(n.kept, kept) {
		t.Errorf("%v; rebuilt %d times, kept %v; want %d, %v", err, n.rebuilt, n.kept, rebuilt, kept)
	}
}

func TestAFollower(t *testing.T) {
	n := &numbers{log: []int{10, 11}}
	f := n.follower()
	n.want(t, f.CatchUp(t.Context()), 1, 10, 11) // it begins with what there is
	n.log = append(n.log, 12, 13, 14)
	n.want(t, f.CatchUp(t.Context()), 1, 10, 11, 12, 13, 14)
	more, err := f.Step(t.Context())
	if n.want(t, err, 1, 10, 11, 12, 13, 14); more {
		t.Error("there is more at the end")
	}

	away := errors.New("the store is away")
	n.log, n.applies = append(n.log, 15), away
	if err := f.CatchUp(t.Context()); !errors.Is(err, away) {
		t.Error(err)
	}
	n.applies = nil
	n.want(t, f.CatchUp(t.Context()), 1, 10, 11, 12, 13, 14, 15) // the same entry again

	n.log, n.trimmed = append(n.log, 16, 17), 7
	n.want(t, f.CatchUp(t.Context()), 2, n.log...)

	n.log = []int{20, 21} // an older copy, or another primary
	n.trimmed = 0
	n.want(t, f.CatchUp(t.Context()), 3, 20, 21)
}

// Whoever has lost the position and cannot begin anew yet does not go on where it was, even when
// the log could be read there again.
func TestALostFollowerBeginsAnew(t *testing.T) {
	n := &numbers{log: []int{10, 11, 12}, begun: true}
	f, away := n.follower(), errors.New("the store is away")
	rebuild := f.Rebuild
	f.Rebuild = func(context.Context) error { return away }
	n.trimmed = 1
	if err := f.CatchUp(t.Context()); !errors.Is(err, away) {
		t.Error(err)
	}
	n.trimmed, f.Rebuild = 0, rebuild
	n.want(t, f.CatchUp(t.Context()), 1, 10, 11, 12)
}
