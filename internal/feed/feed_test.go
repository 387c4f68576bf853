package feed_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"curt/internal/feed"
	"curt/internal/link"
)

// leftOut is a number that the log leaves out.
const leftOut = -1

// numbers is a log of numbers, and a follower that keeps them.
type numbers struct {
	log     []int // the entry i has the position i+1
	trimmed int
	failing error
	partly  bool // a failing log returns what it has

	kept    []int
	at      int
	begun   bool
	applies error
	rebuilt int
}

func (n *numbers) read(_ context.Context, after, most int) (page []int, next int, err error) {
	if n.failing != nil && !n.partly {
		return nil, 0, n.failing
	}
	if after < n.trimmed || after > len(n.log) {
		return nil, 0, link.ErrConflict
	}
	next = min(after+most, len(n.log))
	page = slices.DeleteFunc(slices.Clone(n.log[after:next]), func(i int) bool { return i == leftOut })
	return page, next, n.failing
}

func (n *numbers) follower() *feed.Follower[int, int] {
	return &feed.Follower[int, int]{
		Name: "numbers", Page: 2,
		Log: feed.Log[int, int]{
			Read: n.read,
			Head: func(context.Context) (int, error) { return len(n.log), n.failing },
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

// What a log returns with an error was read, and is not its end.
func TestALogThatFailsInParts(t *testing.T) {
	n := &numbers{log: []int{10}}
	f, away := n.follower(), errors.New("the store is away")
	n.want(t, f.CatchUp(t.Context()), 1, 10)
	n.log, n.failing, n.partly = append(n.log, 11), away, true
	for range 2 {
		if err := f.CatchUp(t.Context()); !errors.Is(err, away) {
			t.Errorf("the log was read to its end: %v", err)
		}
	}
	n.want(t, nil, 1, 10, 11)
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

// What the log leaves out is passed over without Apply, also when it fills pages, and comes no more.
func TestWhatTheLogLeavesOut(t *testing.T) {
	n := &numbers{begun: true}
	f := n.follower()
	n.log = []int{leftOut, leftOut, leftOut, 12}
	for range 2 { // an empty page is the end for now
		if err := f.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	n.want(t, nil, 0, 12)
	if n.at != 4 {
		t.Errorf("it stands at %d", n.at)
	}
	n.log = append(n.log, leftOut, leftOut)
	n.want(t, f.CatchUp(t.Context()), 0, 12)
	n.log, n.kept = []int{20, 21, 22, 23, 24}, nil // another log, which ends before what was passed over
	n.want(t, f.CatchUp(t.Context()), 1, n.log...)
}
