package dynamodb_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	links "curt/internal/backend/dynamodb"
	"curt/internal/backend/dynamodb/linkitem"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/testkit"
)

// outcomes are what callers were told of one kind of write.
type outcomes struct{ done, refused, uncertain atomic.Int64 }

// note returns whether the write was done, and fails the test for an answer that says nothing.
func (o *outcomes) note(t *testing.T, err error) (done bool) {
	switch {
	case err == nil:
		o.done.Add(1)
		return true
	case errors.Is(err, link.ErrUncertain):
		o.uncertain.Add(1)
	case errors.Is(err, link.ErrUnavailable):
		o.refused.Add(1)
	default:
		t.Errorf("a write ended with %v", err)
	}
	return false
}

// TestTrouble lets writers over two handles create, change and spend while a fifth of all requests fails
// in every way.
// What was acknowledged is there, what was refused is not, what nobody knows is one of both, and the
// change log has each version once, in order.
func TestTrouble(t *testing.T) {
	testkit.Faults(t)
	s := startServer(t)
	p := startProxy(t, s.DynamoDB)
	at := s.fresh(t)
	calm := s.open(t, at)
	s.callTime = 0
	at.Endpoint = p.URL
	handles := []*links.Links{s.open(t, at), s.open(t, at)}
	bounded := linktest.Chosen(1, "bounded")
	bounded.MaxClicks = 200
	for _, l := range []link.Link{linktest.Chosen(0, "shared"), bounded} {
		if _, err := calm.Create(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	end := p.Breaks(func(r request) *answer {
		if said := fmt.Sprint(r.Body); strings.Contains(said, "-6]") || strings.Contains(said, "-7]") { // codes that are throttled for good
			return testkit.DynamoDBThrottles()[0]
		}
		if rand.IntN(5) > 0 {
			return nil
		}
		all := testkit.DynamoDBTroubles()
		return all[rand.IntN(len(all))]
	})
	w := &troubled{handles: handles, made: map[link.Key]error{}}
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() { w.work(t, i) })
	}
	writers.Wait()
	end()
	w.check(t, calm)
	if w.creates.refused.Load() == 0 || w.creates.uncertain.Load()+w.clicks.uncertain.Load() == 0 {
		t.Error("no write was refused, or none was uncertain: nothing was tried")
	}
	t.Logf("creates: %d done, %d refused, %d uncertain; changes: %d, %d, %d; clicks: %d granted, %d calls uncertain",
		w.creates.done.Load(), w.creates.refused.Load(), w.creates.uncertain.Load(),
		w.changes.done.Load(), w.changes.refused.Load(), w.changes.uncertain.Load(), w.granted.Load(), w.clicks.uncertain.Load())
}

// troubled is what writers did.
type troubled struct {
	handles                  []*links.Links
	creates, changes, clicks outcomes
	granted                  atomic.Uint64

	mu   sync.Mutex
	made map[link.Key]error // what creates were answered; guarded by mu
}

func (w *troubled) work(t *testing.T, writer int) {
	for n := range 40 {
		h := w.handles[(writer+n)%2]
		l := linktest.Chosen(1000+100*writer+n, link.Code(fmt.Sprintf("code-%d-%d", writer, n)))
		l.CodeKind = linktest.Kind(n%2 == 0)
		_, err := h.Create(t.Context(), l)
		w.creates.note(t, err)
		w.mu.Lock()
		w.made[l.Key] = err
		w.mu.Unlock()
		_, err = link.Update(t.Context(), h, link.Key{Code: "shared"}, "me", func(stored *link.Link) error {
			stored.Title = string(l.Key.Code) // no two writers store the same bytes
			return nil
		})
		w.changes.note(t, err)
		if n%4 == 0 {
			got, err := h.Spend(t.Context(), link.Key{Code: "bounded"}, 3)
			w.clicks.note(t, err)
			w.granted.Add(got)
		}
	}
}

func (w *troubled) check(t *testing.T, s *links.Links) {
	for k, answered := range w.made {
		_, err := s.Get(t.Context(), k)
		switch there := err == nil; {
		case answered == nil && !there:
			t.Errorf("%s was acknowledged and is lost: %v", k, err)
		case answered != nil && !errors.Is(answered, link.ErrUncertain) && there:
			t.Errorf("%s was refused (%v) and is there", k, answered)
		}
	}
	shared, err := s.Get(t.Context(), link.Key{Code: "shared"})
	changed := int64(shared.Version) - 1
	if low, high := w.changes.done.Load(), w.changes.done.Load()+w.changes.uncertain.Load(); err != nil || changed < low || changed > high {
		t.Errorf("%d changes; %d were acknowledged, %d uncertain; %v", changed, low, high-low, err)
	}
	bounded, err := s.Get(t.Context(), link.Key{Code: "bounded"})
	if most := w.granted.Load() + 3*uint64(w.clicks.uncertain.Load()); err != nil || bounded.Spent < w.granted.Load() || bounded.Spent > most || bounded.Spent > bounded.MaxClicks {
		t.Errorf("%d clicks spent, %d granted, %d at the most; %v", bounded.Spent, w.granted.Load(), most, err)
	}
	versions := map[link.Key]link.Version{}
	for at, seq := link.Position(""), link.Sequence(1); ; {
		page, next, err := s.Changes(t.Context(), at, 50)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, c := range page {
			if c.Key == bounded.Key && c.Version == versions[c.Key] { // its last click
				c.Version, versions[c.Key] = 2, 1
			}
			if c.Sequence != seq || c.Version != versions[c.Key]+1 {
				t.Errorf("entry %d is %d, version %d of %s, after %d", seq, c.Sequence, c.Version, c.Key, versions[c.Key])
			}
			versions[c.Key] = c.Version
			seq++
		}
		at = next
	}
	if versions[shared.Key] != shared.Version {
		t.Errorf("the change log has %d versions of %d", versions[shared.Key], shared.Version)
	}
}

// TestTwoWinnersWithoutACondition is the control of one winner: a create that stores without its
// condition has several.
func TestTwoWinnersWithoutACondition(t *testing.T) {
	testkit.Faults(t)
	s := startServer(t)
	store := s.open(t, s.fresh(t))
	winners := func(create func(ctx context.Context, l link.Link) error) (n int64) {
		var won atomic.Int64
		var callers sync.WaitGroup
		for i := range 8 {
			callers.Go(func() {
				l := linktest.Chosen(i, "Taken7")
				l.CodeKind = link.Counted
				if create(t.Context(), l) == nil {
					won.Add(1)
				}
			})
		}
		callers.Wait()
		return won.Load()
	}
	if n := winners(func(ctx context.Context, l link.Link) error { _, err := store.Create(ctx, l); return err }); n != 1 {
		t.Errorf("%d callers won a code", n)
	}
	unconditional := winners(func(ctx context.Context, l link.Link) error {
		l.Version = 1
		item, err := linkitem.Marshal(&l)
		if err != nil {
			return err
		}
		client := store.Client()
		return client.Put(ctx, &dynamodb.PutItemInput{TableName: &client.Links, Item: item})
	})
	if unconditional < 2 {
		t.Errorf("the control had %d winners", unconditional)
	}
}
