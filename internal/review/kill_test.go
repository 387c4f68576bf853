package review_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
	"curt/internal/review"
)

var errDied = errors.New("the process was killed")

// mortal is what a desk reads and writes, up to the call at which its process is killed:
// before that call, or behind it with nobody told. From then on nothing answers.
type mortal struct {
	moderation.Cases
	review.Journal

	calls  int // to live
	behind bool
	died   bool
}

func (m *mortal) call(do func() error) error {
	if m.died {
		return errDied
	}
	if m.calls--; m.calls > 0 {
		return do()
	}
	if m.died = true; m.behind {
		_ = do() // done, and not told
	}
	return errDied
}

func (m *mortal) Position(ctx context.Context) (at uint64, err error) {
	err = m.call(func() error { at, err = m.Cases.Position(ctx); return err })
	return at, err
}

func (m *mortal) Read(ctx context.Context, after uint64, _ int) (entries []moderation.Entry, err error) {
	err = m.call(func() error { entries, err = m.Journal.Read(ctx, after, 3); return err })
	return entries, err
}

func (m *mortal) Follow(ctx context.Context, after, to uint64, steps []moderation.Step) (closed []moderation.Case, err error) {
	err = m.call(func() error { closed, err = m.Cases.Follow(ctx, after, to, steps); return err })
	return closed, err
}

func (m *mortal) Close(ctx context.Context, c moderation.Closing) (closed moderation.Case, err error) {
	err = m.call(func() error { closed, err = m.Cases.Close(ctx, c); return err })
	return closed, err
}

func (m *mortal) Pending(ctx context.Context, after link.ID, n int) (pending []moderation.Case, err error) {
	err = m.call(func() error { pending, err = m.Cases.Pending(ctx, after, n); return err })
	return pending, err
}

func (m *mortal) Describe(ctx context.Context, id link.ID, f moderation.Facts) error {
	return m.call(func() error { return m.Cases.Describe(ctx, id, f) })
}

// restart is a desk on the same stores, whose process lives for so many calls.
func (o *office) restart(t *testing.T, calls int, behind bool) *mortal {
	t.Helper()
	m := &mortal{Cases: o.cases, Journal: o.journal, calls: calls, behind: behind}
	another := newOffice(t, func(c *review.Config) {
		c.Cases, c.Appeals, c.Destinations, c.Journal, c.Moderator, c.Links = m, o.cases, o.cases, m, o.moderator, o.links
	})
	o.Service = another.Service
	return m
}

// allCases are the cases of a queue, open and closed, but for their ids.
func allCases(t *testing.T, queue moderation.Cases) (all []moderation.Case) {
	t.Helper()
	for _, closed := range []bool{false, true} {
		page := moderation.CasePage{Limit: moderation.MaxCasePage}
		for begin := true; begin || page.After != (moderation.CasePosition{}); begin = false {
			found, next, err := queue.List(t.Context(), moderation.CaseFilter{Closed: closed, Order: moderation.ByNewest}, page)
			if err != nil {
				t.Fatal(err)
			}
			all, page.After = append(all, found...), next
		}
	}
	return all
}

// What the journal says is in the queue exactly once, wherever and however often the
// process dies between its steps: afterwards the queue is what one reading of the journal
// by a desk that never died makes.
func TestAKilledFollowerCountsOnce(t *testing.T) {
	deaths := 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 7)) // the same at each run
		o := newOffice(t)
		life := o.restart(t, 1+random.IntN(12), random.IntN(2) == 0)
		revive := func() {
			if life.died {
				deaths++
				life = o.restart(t, 1+random.IntN(12), random.IntN(2) == 0)
			}
		}
		var late []link.Link
		for step := range 40 {
			now := noon().Add(time.Duration(step) * 10 * time.Second) // a link that is written comes in time
			code := fmt.Sprint("code-", random.IntN(6))
			switch random.IntN(5) {
			case 0, 1: // the policy decides about a link that may be there, or is made later
				l, err := o.links.Get(t.Context(), key(code))
				if errors.Is(err, link.ErrNotFound) {
					l = o.unborn(t, code, now)
					late = append(late, l)
				}
				o.suspectAt(t, &l, now, 61+random.IntN(20))
			case 2: // a person decides, perhaps with the desk's own hand
				l, err := o.links.Get(t.Context(), key(code))
				if err != nil {
					continue
				}
				_, err = o.Decide(t.Context(), now, admin(), []review.Ruling{{Key: l.Key, Safety: link.Blocked, Reason: "harmful"}})
				if err != nil && !errors.Is(err, errDied) {
					t.Fatal(err)
				}
			case 3: // links are written
				for i := range late {
					if _, err := o.links.Create(t.Context(), late[i]); err != nil && !errors.Is(err, link.ErrExists) {
						t.Fatal(err)
					}
				}
				late = nil
			}
			if err := o.Turn(t.Context(), now); err != nil && !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			revive()
		}
		end := noon().Add(24 * time.Hour)
		o.restart(t, 1<<30, false)
		o.turn(t, end)

		calm := moderationtest.NewMemoryCases()
		once := office{links: o.links, cases: calm, journal: o.journal, moderator: o.moderator}
		once.restart(t, 1<<30, false)
		once.turn(t, end)
		if diff := cmp.Diff(allCases(t, calm), allCases(t, o.cases), cmpopts.IgnoreFields(moderation.Case{}, "ID")); diff != "" {
			t.Fatalf("seed %d: the queue is not what the journal says (-journal +queue):\n%s", seed, diff)
		}
	}
	if deaths < 200 {
		t.Errorf("only %d deaths: that proves little", deaths)
	}
	t.Logf("%d deaths", deaths)
}

// unborn is a link that is about to be made.
func (o office) unborn(t *testing.T, code string, now time.Time) link.Link {
	t.Helper()
	scratch := newOffice(t)
	return scratch.put(t, code, func(l *link.Link) { l.Created, l.Updated = now, now })
}

// suspectAt is suspect at an instant.
func (o office) suspectAt(t *testing.T, l *link.Link, now time.Time, score int) {
	t.Helper()
	_, err := o.journal.Append(t.Context(), moderation.Entry{
		At: now, Entity: moderation.OfLink(l.Key), Link: l.ID, Action: moderation.ActionDecide, Safety: link.Quarantined, Score: score, Actor: moderation.ActorPolicy,
	})
	if err != nil {
		t.Fatal(err)
	}
}
