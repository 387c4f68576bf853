package moderator_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
	"curt/internal/moderation/moderator"
)

func noon() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }

// desk is a Moderator over memory, and what it announced.
type desk struct {
	*moderator.Moderator

	journal *moderationtest.Memory
	links   *linktest.Memory
	store   link.Store // what the Moderator sees of links

	mu        sync.Mutex
	announced []link.Change
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{journal: moderationtest.NewMemory(), links: linktest.NewMemory()}
	d.store = d.links
	return d.open(t)
}

// open opens a Moderator on what is there, as the next start does.
func (d *desk) open(t *testing.T) *desk {
	t.Helper()
	var err error
	d.Moderator, err = moderator.Open(t.Context(), moderator.Config{
		Journal: d.journal, Progress: d.journal, Links: d.store, Random: rand.Reader, Now: noon,
		Announce: func(c link.Change) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.announced = append(d.announced, c)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// run steps until nothing is left to do.
func (d *desk) run(t *testing.T) {
	t.Helper()
	for {
		more, err := d.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return
		}
	}
}

// changes returns what was announced since the last call.
func (d *desk) changes() []link.Change {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.announced
	d.announced = nil
	return was
}

// make stores the n-th link.
func (d *desk) make(t *testing.T, n int, change ...func(*link.Link)) link.Key {
	t.Helper()
	l := link.Link{
		ID: moderationtest.IDOf(n), Key: link.Key{Code: link.Code(fmt.Sprintf("link-%d", n))}, Workspace: "acme", CreatedBy: "maker",
		Destination: "https://www.example.com/", Status: link.Active, Safety: link.Clean, Redirect: 302, Created: noon(), Updated: noon(),
	}
	for _, f := range change {
		f(&l)
	}
	if _, err := d.links.Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return l.Key
}

func to(destination string) func(*link.Link) {
	return func(l *link.Link) { l.Destination = destination }
}

// safety fails unless a link has it.
func (d *desk) safety(t *testing.T, k link.Key, want link.Safety) {
	t.Helper()
	l, err := d.links.Get(t.Context(), k)
	if err != nil || l.Safety != want {
		t.Errorf("%s is %s, want %s (%v)", k, l.Safety, want, err)
	}
}

// decide decides about one link.
func (d *desk) decide(t *testing.T, k link.Key, s link.Safety) moderator.Outcome {
	t.Helper()
	out, err := d.Decide(t.Context(), noon(), "moderator", []moderator.Order{{Key: k, Safety: s, Reason: "because"}})
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func (d *desk) ban(t *testing.T, kind moderation.Kind, name string) moderation.Entry {
	t.Helper()
	b, err := d.Ban(t.Context(), noon(), "moderator", moderation.Entity{Kind: kind, Name: name}, link.Blocked, "because")
	if err != nil {
		t.Fatal(err)
	}
	return b.Entry
}

func (d *desk) lift(t *testing.T, sequence uint64) {
	t.Helper()
	if _, err := d.Lift(t.Context(), noon(), "moderator", sequence, "because"); err != nil {
		t.Fatal(err)
	}
}

// entries returns the whole journal.
func (d *desk) entries(t *testing.T) (all []moderation.Entry) {
	t.Helper()
	if _, err := moderation.Verify(t.Context(), d.journal, func(e *moderation.Entry) { all = append(all, *e) }); err != nil {
		t.Fatal(err)
	}
	return all
}

// watched lets a test look, or fail, before each call of a link store.
type watched struct {
	link.Store

	before func(method string) error
}

func (w watched) Replace(ctx context.Context, l link.Link, e link.Edit) (link.Link, error) {
	if err := w.before("Replace"); err != nil {
		return link.Link{}, err
	}
	return w.Store.Replace(ctx, l, e)
}

func (w watched) List(ctx context.Context, f link.Filter, p link.Page) (link.Slice, error) {
	if err := w.before("List"); err != nil {
		return link.Slice{}, err
	}
	return w.Store.List(ctx, f, p)
}
