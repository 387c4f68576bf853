package moderation

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curt/internal/abuse"
	"curt/internal/link"
)

// Config is what [Open] needs.
type Config struct {
	Journal  Journal
	Progress ProgressStore
	Links    link.Store

	// Peers are other processes with a Moderator on the same links; nil = there are none.
	// Then what one of them decides or bans is known here a second later, each walks for
	// each ban, and what a peer left undone when it ended is done by others.
	Peers Peers

	// Announce is called, after the write is durable, with each link that got another
	// safety. Nothing that begins after it returned may answer what the link was before. It
	// must not block. Nil = nobody listens.
	Announce func(link.Change)

	// Random is the source of salts, normally crypto/rand.Reader.
	Random io.Reader

	// Now returns the time, for what Run does; nil = time.Now.
	Now func() time.Time

	// Work is called by what computes for long, which calls done when it rests; nil = it
	// is nobody's business.
	Work func() (done func())

	// Aside runs what somebody waits for and that takes long, where it keeps nobody from a
	// processor; nil = at once, on the caller's goroutine.
	Aside func(ctx context.Context, compute func(context.Context) error) error

	// Metrics registers the package's counters; nil = they are kept to itself.
	Metrics prometheus.Registerer

	Log *slog.Logger // nil = none
}

// Moderator makes decisions about links and bans, and lets them take effect. There is one
// in a process. It is safe for many goroutines.
//
// Every decision is in the journal before anything else happens. If the process dies then,
// the next Open finds it there and does the rest.
//
// Lock order: banning, then settling, then mu and those inside banSet and gate.
type Moderator struct {
	// Set once in Open.
	cfg     Config
	metrics *metrics
	seed    maphash.Seed
	gate    *gate
	bans    *banSet

	settling [stripes]sync.Mutex // held from the look at what should be until it is written

	banning sync.Mutex // held from the append of a ban or a lift until it is in bans
	known   uint64     // the newest entry that bans know; guarded by banning

	wake    chan struct{} // capacity 1: there is something for Run to do
	rebuild atomic.Bool   // somebody asked for a walk through all links

	mu       sync.Mutex
	progress Progress // guarded by mu; Run alone changes it

	follower // owned by Open, then by Run
}

// stripes bounds the memory of locks. Two keys of one stripe wait for each other, which
// costs a commit and nothing else.
const stripes = 256

// Open returns the Moderator of a store of links. It knows all bans, and all that the
// journal says about links stands in them, but for the walks of bans and for links that
// cannot be written now, which Run goes on with.
func Open(ctx context.Context, cfg Config) (*Moderator, error) {
	if cfg.Announce == nil {
		cfg.Announce = func(link.Change) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Work == nil {
		cfg.Work = func() func() { return func() {} }
	}
	if cfg.Aside == nil {
		cfg.Aside = func(ctx context.Context, compute func(context.Context) error) error { return compute(ctx) }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	m := &Moderator{cfg: cfg, seed: maphash.MakeSeed(), gate: newGate(), wake: make(chan struct{}, 1)}
	bans, err := cfg.Journal.Bans(ctx)
	if err != nil {
		return nil, fmt.Errorf("load bans: %w", err)
	}
	m.bans = newBanSet(bans...)
	m.metrics = newMetrics(cfg.Metrics, m.bans)
	if m.progress, err = cfg.Progress.Progress(ctx); err != nil {
		return nil, fmt.Errorf("load the progress of decisions: %w", err)
	}
	m.follower = newFollower(m.progress)
	if len(bans) > 0 {
		m.known = bans[len(bans)-1].Sequence
	}
	if err := m.follow(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("let decisions of the last run take effect: %w", err)
		}
		// A full disk or a damaged row keeps nobody from being redirected.
		cfg.Log.ErrorContext(ctx, "decisions of the last run cannot take effect; trying again", slog.Any("err", err))
	}
	return m, nil
}

// Journal is what the Moderator writes to.
func (m *Moderator) Journal() Journal { return m.cfg.Journal }

// Enter is called before Bars by whoever then writes a link, and leave after the write: a
// ban waits for those who were judged without it before it looks for the links that it
// means.
func (m *Moderator) Enter() (leave func()) { return m.gate.enter() }

// Bars returns the gravest ban that stands against a link with these facts, if there is
// one. It asks memory only, allocates next to nothing and never waits for I/O.
func (m *Moderator) Bars(f *abuse.Facts) (ban Entry, barred bool) { return m.bans.bars(f) }

// BanOf returns the gravest ban that means a link, if there is one. It asks memory only.
func (m *Moderator) BanOf(l *link.Link) (ban Entry, banned bool) { return m.bans.worst(l) }

// Holds returns the safety that a link should have: that of its own standing decision or
// of a ban that means it, whichever is graver.
func (m *Moderator) Holds(ctx context.Context, l *link.Link) (link.Safety, error) {
	safety := m.bans.means(l)
	own, err := m.cfg.Journal.Standing(ctx, l.ID)
	switch {
	case err == nil:
		safety = max(safety, own.Safety)
	case !errors.Is(err, ErrNotFound):
		return 0, fmt.Errorf("what holds of %s: %w", l.Key, err)
	}
	return safety, nil
}

// errSettled ends an update that has nothing to write.
var errSettled = errors.New("the link is as it should be")

// Settle gives a link the safety that it should have, and announces the change if it is
// one. Errors: link.ErrNotFound, also for a tombstone, and those of the stores.
func (m *Moderator) Settle(ctx context.Context, now time.Time, k link.Key) (link.Link, error) {
	l, _, err := m.settle(ctx, now, k)
	return l, err
}

func (m *Moderator) settle(ctx context.Context, now time.Time, k link.Key) (l link.Link, changed bool, err error) {
	now = now.UTC().Truncate(time.Millisecond)
	// What should be is looked up and written under a lock: otherwise of two who decide at
	// once the earlier could write last. Against other processes and the link's owner the
	// compare-and-swap of Update holds; a process that was overtaken sees the later entry
	// in follow and settles again.
	lock := &m.settling[maphash.Comparable(m.seed, k)%stripes]
	lock.Lock()
	defer lock.Unlock()
	var found link.Link
	l, err = link.Update(ctx, m.cfg.Links, k, ActorModeration, func(stored *link.Link) error {
		want, err := m.Holds(ctx, stored)
		if err != nil {
			return err
		}
		if found = *stored; found.Safety == want {
			return errSettled
		}
		stored.Safety = want
		if now.After(stored.Updated) {
			stored.Updated = now
		}
		return nil
	})
	switch {
	case errors.Is(err, errSettled):
		return found, false, nil
	case err != nil:
		return link.Link{}, false, fmt.Errorf("settle: %w", err)
	}
	m.cfg.Announce(link.Change{Key: l.Key, Version: l.Version})
	return l, true, nil
}
