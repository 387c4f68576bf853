package moderator_test

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
	"curt/internal/moderation/moderator"
)

// fleet keeps the progress of several processes, by a clock of its own.
type fleet struct {
	journal *moderationtest.Memory
	links   *linktest.Memory

	mu   sync.Mutex
	now  time.Time                  // guarded by mu, as all below
	kept map[string]moderation.Left // by name
}

func newFleet() *fleet {
	return &fleet{journal: moderationtest.NewMemory(), links: linktest.NewMemory(), now: noon(), kept: map[string]moderation.Left{}}
}

func (f *fleet) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

func (f *fleet) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fleet) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.kept))
}

// start returns the Moderator of a process; alone leaves out that there are others.
func (f *fleet) start(t *testing.T, name string, alone bool) *desk {
	t.Helper()
	d := &desk{journal: f.journal, links: f.links, store: f.links}
	cfg := moderator.Config{
		Journal: f.journal, Progress: member{f, name}, Peers: member{f, name}, Links: f.links, Random: rand.Reader, Now: f.clock,
	}
	if alone {
		cfg.Peers = nil
	}
	var err error
	if d.Moderator, err = moderator.Open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	return d
}

// member is what one process sees of the fleet.
type member struct {
	*fleet

	name string
}

func (m member) Progress(context.Context) (p moderation.Progress, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if own, ok := m.kept[m.name]; ok {
		return own.Progress.Clone(), nil
	}
	for _, name := range slices.Sorted(maps.Keys(m.kept)) {
		if applied := m.kept[name].Progress.Applied; p.Applied == 0 || applied < p.Applied {
			p.Applied = applied
		}
	}
	return p, nil
}

func (m member) StoreProgress(_ context.Context, p moderation.Progress) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept[m.name] = moderation.Left{Name: m.name, StoredAt: m.now, Progress: p.Clone()}
	return nil
}

func (m member) Silent(context.Context) (left []moderation.Left, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, l := range m.kept {
		if name != m.name && m.now.Sub(l.StoredAt) > moderation.SilentFor {
			left = append(left, l)
		}
	}
	return left, nil
}

func (m member) Forget(_ context.Context, l moderation.Left) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept[l.Name].StoredAt.Equal(l.StoredAt) {
		delete(m.kept, l.Name)
	}
	return nil
}

func TestVerdictsOfAPeerAreFollowed(t *testing.T) {
	f := newFleet()
	a, b := f.start(t, "a", false), f.start(t, "b", false)
	const url = "https://evil.example/"
	about := moderation.OfDestination("acme", moderation.DigestOf(url))
	decide := func(s link.Safety) moderation.Entry {
		t.Helper()
		e, err := a.DecideDestination(t.Context(), noon(), "moderator", about, moderationtest.IDOf(1), moderator.Order{Safety: s, Reason: "as it is"})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	expect := func(n *desk, want moderation.Entry) {
		t.Helper()
		if got, decided := n.Verdict("acme", url); got.Sequence != want.Sequence || got.Safety != want.Safety || decided != (want.Sequence != 0) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	first := decide(link.Blocked)
	expect(a, first)
	expect(b, moderation.Entry{})
	b.run(t)
	expect(b, first)
	second := decide(link.Clean)
	expect(f.start(t, "c", false), second) // from the journal alone
	expect(b, first)
	b.run(t)
	expect(b, second)
	if _, err := a.DecideDestination(t.Context(), noon(), "moderator", about, moderationtest.IDOf(1), moderator.Order{Safety: link.Clean}); !errors.Is(err, moderation.ErrInvalid) {
		t.Errorf("without a reason: %v", err)
	}
}

func TestBansOfAPeerAreHeard(t *testing.T) {
	f := newFleet()
	a, b := f.start(t, "a", false), f.start(t, "b", false)
	evil := facts(t, "https://evil.example/", "192.0.2.1/32")
	ban := a.ban(t, moderation.KindHost, "evil.example")
	if _, barred := b.CheckBan(evil); barred {
		t.Fatal("b knows already: this proves nothing")
	}
	b.run(t)
	if _, barred := b.CheckBan(evil); !barred {
		t.Error("b does not know the ban")
	}
	if _, err := a.Erase(t.Context(), noon(), "moderator", ban.Sequence, "it names somebody"); err != nil {
		t.Fatal(err)
	}
	b.run(t)
	if stands, ok := b.ActiveBan(ban.Sequence); !ok || !stands.Entry.Reason.Erased {
		t.Errorf("b shows what was erased: %+v, %v", stands.Entry.Reason, ok)
	}
	b.lift(t, ban.Sequence)
	a.run(t)
	if _, barred := a.CheckBan(evil); barred {
		t.Error("a does not know that the ban was lifted")
	}
}

// A peer that does not know a ban writes a link when whoever banned has walked already:
// its own walk, which waits for it, finds the link.
func TestAPeerFindsWhatItWroteWithoutTheBan(t *testing.T) {
	f := newFleet()
	a, b := f.start(t, "a", false), f.start(t, "b", false)
	leave := b.BeginWrite()
	a.ban(t, moderation.KindHost, "evil.example")
	a.run(t)
	k := b.make(t, 1, to("https://evil.example/"))
	b.safety(t, k, link.Clean)
	leave()
	b.run(t)
	b.safety(t, k, link.Blocked)
}

// The same, and the peer dies before it hears of the ban: another does what it left. The
// control knows of no peers, and the link stays.
func TestWhatADeadPeerLeftIsDone(t *testing.T) {
	for name, alone := range map[string]bool{"with peers": false, "control": true} {
		t.Run(name, func(t *testing.T) {
			f := newFleet()
			a, b := f.start(t, "a", alone), f.start(t, "b", false)
			b.run(t)
			a.ban(t, moderation.KindHost, "evil.example")
			a.run(t)
			k := b.make(t, 1, to("https://evil.example/")) // its last
			f.pass(moderation.SilentFor + time.Second)
			a.run(t)
			if alone {
				a.safety(t, k, link.Clean)
				return
			}
			a.safety(t, k, link.Blocked)
			if got := f.names(); !slices.Equal(got, []string{"a"}) {
				t.Errorf("known are %v", got)
			}
			// It slept only: it comes back as it was.
			f.pass(time.Minute)
			b.run(t)
			if got := f.names(); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("known are %v", got)
			}
		})
	}
}

// A walk that a peer had begun goes on where it was.
func TestAWalkOfADeadPeerIsInherited(t *testing.T) {
	f := newFleet()
	b := f.start(t, "b", false)
	k := b.make(t, 1, to("https://evil.example/"))
	left := moderation.Progress{Walks: []moderation.Walk{{Entities: []moderation.Entity{{Kind: moderation.KindHost, Name: "evil.example"}}}}}
	b.ban(t, moderation.KindHost, "evil.example")
	left.Applied = 1
	if err := (member{f, "b"}).StoreProgress(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	a := f.start(t, "a", false)
	f.pass(moderation.SilentFor + time.Second)
	a.run(t)
	a.safety(t, k, link.Blocked)
}

// Whoever joins begins where all others have been, and not with the first entry.
func TestANewcomerBeginsWithTheOthers(t *testing.T) {
	f := newFleet()
	a := f.start(t, "a", false)
	k := a.make(t, 1)
	a.decide(t, k, link.Warn)
	a.run(t)
	b := f.start(t, "b", false)
	b.run(t)
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := f.kept["b"].Progress; got.Applied != 1 || len(got.Walks) != 0 {
		t.Errorf("b begins with %+v", got)
	}
}

// TestAPeersBanIsNotOvertaken: a ban of a peer is learned also when this process bans something else,
// or the same, before it has read the journal; what came last of one entity holds.
func TestAPeersBanIsNotOvertaken(t *testing.T) {
	f := newFleet()
	a, b := f.start(t, "a", false), f.start(t, "b", false)
	b.ban(t, moderation.KindHost, "peers.example")
	other := b.ban(t, moderation.KindHost, "both.example")
	b.lift(t, other.Sequence)
	a.ban(t, moderation.KindHost, "both.example")
	a.ban(t, moderation.KindHost, "own.example")
	for _, d := range []*desk{a, b} {
		for more := true; more; {
			var err error
			if more, err = d.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var names []string
		for _, ban := range d.Bans() {
			names = append(names, ban.Entry.Entity.Name)
		}
		if slices.Sort(names); !slices.Equal(names, []string{"both.example", "own.example", "peers.example"}) {
			t.Errorf("%v", names)
		}
	}
}
