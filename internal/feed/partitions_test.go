package feed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"curt/internal/feed"
	"curt/internal/feed/feedtest"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

func TestMemory(t *testing.T) {
	for _, partitions := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d partitions", partitions), func(t *testing.T) {
			feedtest.Run(t, feedtest.Harness{
				Open:    func(testing.TB, int64, link.LogBounds) feedtest.Store { return feedtest.NewMemory(partitions) },
				Foreign: "1000000",
			})
		})
	}
}

// moved returns a store of three partitions, where one of ten links has moved, and its version.
func moved(t *testing.T) (*feedtest.Memory, link.Key, link.Version) {
	t.Helper()
	s := feedtest.NewMemory(3)
	var moving link.Link
	for i := range 10 {
		l, err := s.Create(t.Context(), linktest.Chosen(i, link.Code(fmt.Sprintf("feed-%d", i))))
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			if l, err = link.Update(t.Context(), s, l.Key, "me", func(l *link.Link) error { l.Title += "x"; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if l.Key.Code == feedtest.Moving {
			moving = l
		}
	}
	return s, moving.Key, moving.Version
}

// read follows a log to its end by small pages; next moves the position. It ends early where the log
// refuses a position.
func read(t *testing.T, log feed.Log[link.Position, link.Event], next func(link.Position) link.Position) (heard feedtest.Heard, all []link.Event) {
	t.Helper()
	var at link.Position
	f := feed.Follower[link.Position, link.Event]{
		Name: "test", Log: log, Page: 4,
		Position: func(context.Context) (link.Position, bool, error) { return at, true, nil },
		Apply: func(_ context.Context, page []link.Event, to link.Position) error {
			heard.Take(page)
			all, at = append(all, page...), next(to)
			return nil
		},
	}
	if err := f.CatchUp(t.Context()); err != nil && !errors.Is(err, link.ErrConflict) {
		t.Fatal(err)
	}
	return heard, all
}

func same(p link.Position) link.Position { return p }

// Whoever goes by key and version knows what is so, in whichever order partitions come; the control,
// who goes by arrival, does not.
func TestAKeyThatMoves(t *testing.T) {
	s, moving, version := moved(t)
	heard, all := read(t, feed.Log[link.Position, link.Event]{Read: s.Events, Head: s.Head}, same)
	if err := heard.Err(); err != nil || len(all) != 50 || heard.Latest()[moving] != version {
		t.Errorf("%d entries, version %d of %s, %v", len(all), heard.Latest()[moving], moving, err)
	}
	byArrival, partitions := map[link.Key]link.Version{}, map[uint16]bool{}
	for _, e := range all {
		byArrival[e.Key] = e.Version
		if e.Key == moving {
			partitions[e.Partition] = true
		}
	}
	if len(partitions) < 2 || byArrival[moving] == version {
		t.Errorf("the control is right about version %d in partitions %v", byArrival[moving], partitions)
	}
}

// The controls of partitions: what the suite must notice.
func TestTheSuiteNoticesPartitions(t *testing.T) {
	s, _, _ := moved(t)
	early := 0
	for name, heard := range map[string]func() (feedtest.Heard, []link.Event){
		"a sequence that is visible before a lower one of its partition": func() (feedtest.Heard, []link.Event) {
			return read(t, feed.Log[link.Position, link.Event]{Read: func(ctx context.Context, after link.Position, n int) ([]link.Event, link.Position, error) {
				page, next, err := s.Events(ctx, after, n)
				if early++; early == 2 { // the first of the page commits later
					page = slices.Delete(page, 0, 1)
				}
				return page, next, err
			}}, same)
		},
		"positions that are merged by their maximum": func() (feedtest.Heard, []link.Event) {
			return read(t, feed.Log[link.Position, link.Event]{Read: s.Events}, func(p link.Position) link.Position {
				heads, err := p.Heads()
				if err != nil {
					t.Fatal(err)
				}
				most := slices.Max(heads)
				return link.Heads{most, most, most}.Position()
			})
		},
	} {
		if heard, all := heard(); heard.Err() == nil && len(all) == 50 {
			t.Errorf("%s: nothing is noticed", name)
		}
	}
}

// A follower that stands before what a partition has trimmed, or behind its end, begins anew.
func TestAPartitionThatWasTrimmed(t *testing.T) {
	s, _, _ := moved(t)
	head, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	heads, err := head.Heads()
	if err != nil || len(heads) != 3 {
		t.Fatal(heads, err)
	}
	s.Trim(1, heads[1])
	for name, c := range map[string]struct {
		at   link.Heads
		want error
	}{
		"at the head":               {heads, nil},
		"before what is there":      {link.Heads{0, heads[1] - 1, 0}, nil},
		"before what was trimmed":   {link.Heads{heads[0], heads[1] - 2, heads[2]}, link.ErrConflict},
		"behind one head":           {link.Heads{0, heads[1], heads[2] + 1}, link.ErrConflict},
		"of more partitions":        {append(slices.Clone(heads), 1), link.ErrConflict},
		"of one partition, trimmed": {link.Heads{heads[0]}, link.ErrConflict},
	} {
		if _, _, err := s.Events(t.Context(), c.at.Position(), 10); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if _, _, _, err := s.ExpiryChanges(t.Context(), c.at.Position(), 10); !errors.Is(err, c.want) {
			t.Errorf("expiry changes %s: %v, want %v", name, err, c.want)
		}
	}
}
