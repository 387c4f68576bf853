// Package moderator decides about links and bans, writes every decision into the journal, and
// lets it take effect. Read moderator.go for what a link should be and how it becomes so, then
// decide.go and ban.go for the two ways in, follow.go and walk.go for what happens behind.
package moderator

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curt/internal/abuse"
	"curt/internal/background"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/bans"
)

// Config is what [Open] needs.
type Config struct {
	Journal  moderation.Journal
	Progress moderation.ProgressStore
	Links    link.Store

	// Peers are other processes with a Moderator on the same links; nil = there are none.
	// Then what one of them decides or bans is known here a second later, each walks for
	// each ban, and what a peer left undone when it ended is done by others.
	Peers moderation.Peers

	// Announce is called, after the write is durable, with each link that got another
	// safety. Nothing that begins after it returned may answer what the link was before. It
	// must not block. Nil = nobody listens.
	Announce func(link.Change)

	// Lists are told of every entry that lists or unlists a line, in order. Nil = nobody listens.
	Lists Lists

	// Pending returns link.ErrPending for a link that was accepted and is not written yet, of which Links returned err; else err, or why
	// nobody knows. Nil = there are none.
	Pending func(ctx context.Context, k link.Key, err error) error

	// Random is the source of salts, normally crypto/rand.Reader.
	Random io.Reader

	// Now returns the time, for what Run does; nil = time.Now.
	Now func() time.Time

	// Yielder schedules walks and previews; nil = nothing is scheduled.
	Yielder background.Yielder

	// Metrics registers the package's counters; nil = they are kept to itself.
	Metrics prometheus.Registerer

	Log *slog.Logger // nil = none
}

// Lists are what the follower of the journal needs of a lists.Keeper.
type Lists interface {
	// Learn takes an entry; Publish puts into effect what was learned.
	Learn(e *moderation.Entry)
	Publish() error
}

// noLists is a Lists that nobody reads.
type noLists struct{}

func (noLists) Learn(*moderation.Entry) {}
func (noLists) Publish() error          { return nil }

// Moderator makes decisions about links and bans, and lets them take effect. There is one
// in a process. It is safe for many goroutines.
//
// Every decision is in the journal before anything else happens. If the process dies then,
// the next Open finds it there and does the rest.
//
// Lock order: activeBans.mu, then applying, then follower.mu and those inside bans.Set and bans.Gate.
type Moderator struct {
	// Set once in Open.
	cfg     Config
	metrics *metrics
	seed    maphash.Seed
	gate    *bans.Gate
	bans    *activeBans

	verdicts *bans.Verdicts

	applying [stripes]sync.Mutex // held from the look at what should be until it is written

	follower *follower // what happens behind decisions
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
	if cfg.Lists == nil {
		cfg.Lists = noLists{}
	}
	if cfg.Pending == nil {
		cfg.Pending = func(_ context.Context, _ link.Key, err error) error { return err }
	}
	cfg.Yielder = background.Or(cfg.Yielder)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	m := &Moderator{cfg: cfg, seed: maphash.MakeSeed(), gate: bans.NewGate()}
	active, err := cfg.Journal.Bans(ctx)
	if err != nil {
		return nil, fmt.Errorf("load bans: %w", err)
	}
	m.bans = newActiveBans(cfg.Journal, active)
	verdicts, err := cfg.Journal.Verdicts(ctx)
	if err != nil {
		return nil, fmt.Errorf("load decisions about destinations: %w", err)
	}
	m.verdicts = bans.NewVerdicts(verdicts...)
	m.metrics = newMetrics(cfg.Metrics, m.bans.Set)
	progress, err := cfg.Progress.Progress(ctx)
	if err != nil {
		return nil, fmt.Errorf("load the progress of decisions: %w", err)
	}
	m.follower = newFollower(m, progress)
	if err := m.follower.follow(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("apply decisions of the previous run: %w", err)
		}
		// A full disk or a damaged row keeps nobody from being redirected.
		cfg.Log.ErrorContext(ctx, "applying decisions of the previous run failed, retrying", slog.Any("err", err))
	}
	return m, nil
}

// Journal is what the Moderator writes to.
func (m *Moderator) Journal() moderation.Journal { return m.cfg.Journal }

// BeginWrite is called before CheckBan by whoever then writes a link, and leave after the write: a
// ban waits for those who were judged without it before it looks for the links that it
// means.
func (m *Moderator) BeginWrite() (leave func()) { return m.gate.BeginWrite() }

// CheckBan returns the gravest ban that stands against a link with these facts, if there is
// one. It asks memory only, allocates next to nothing and never waits for I/O.
func (m *Moderator) CheckBan(f *abuse.Facts) (ban moderation.Entry, barred bool) {
	return m.bans.Against(f)
}

// Verdict returns the newest decision about a destination that holds for a workspace. It reads memory
// only.
func (m *Moderator) Verdict(w link.WorkspaceID, url string) (verdict moderation.Entry, decided bool) {
	return m.verdicts.Of(w, url)
}

// OnRevoked is that of bans.Verdicts.
func (m *Moderator) OnRevoked(revoked func(w link.WorkspaceID, digest moderation.Hash)) {
	m.verdicts.OnRevoked(revoked)
}

// BanOf returns the gravest ban that means a link, if there is one. It asks memory only.
func (m *Moderator) BanOf(l *link.Link) (ban moderation.Entry, banned bool) { return m.bans.Worst(l) }

// EffectiveSafety returns the safety that a link should have: that of its own standing decision or
// of a ban that means it, whichever is graver.
func (m *Moderator) EffectiveSafety(ctx context.Context, l *link.Link) (link.Safety, error) {
	safety := m.bans.Safety(l)
	own, err := m.cfg.Journal.EffectiveDecision(ctx, l.ID)
	switch {
	case err == nil:
		safety = max(safety, own.Safety)
	case !errors.Is(err, moderation.ErrNotFound):
		return 0, fmt.Errorf("effective safety of %s: %w", l.Key, err)
	}
	return safety, nil
}

// errUnchanged ends an update that has nothing to write.
var errUnchanged = errors.New("the link is already up to date")

// Apply gives a link the safety that it should have, and announces the change if it is
// one. Errors: link.ErrNotFound, also for a tombstone, and those of the stores.
func (m *Moderator) Apply(ctx context.Context, now time.Time, k link.Key) (link.Link, error) {
	l, _, err := m.apply(ctx, now, k)
	return l, err
}

func (m *Moderator) apply(ctx context.Context, now time.Time, k link.Key) (l link.Link, changed bool, err error) {
	now = now.UTC().Truncate(time.Millisecond)
	// What should be is looked up and written under a lock: otherwise of two who decide at
	// once the earlier could write last. Against other processes and the link's owner the
	// compare-and-swap of Update holds; a process that was overtaken sees the later entry
	// in follow and applies again.
	lock := &m.applying[maphash.Comparable(m.seed, k)%stripes]
	lock.Lock()
	defer lock.Unlock()
	var found link.Link
	l, err = link.Update(ctx, m.cfg.Links, k, moderation.ActorModeration, func(stored *link.Link) error {
		want, err := m.EffectiveSafety(ctx, stored)
		if err != nil {
			return err
		}
		if found = *stored; found.Safety == want {
			return errUnchanged
		}
		stored.Safety = want
		if now.After(stored.Updated) {
			stored.Updated = now
		}
		return nil
	})
	switch {
	case errors.Is(err, errUnchanged):
		return found, false, nil
	case err != nil:
		return link.Link{}, false, fmt.Errorf("apply decisions: %w", err)
	}
	m.cfg.Announce(link.Change{Key: l.Key, Version: l.Version})
	return l, true, nil
}

// metrics are what the moderator counts. Labels are bounded by construction.
type metrics struct {
	decisions *prometheus.CounterVec
	effects   prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, bans *bans.Set) *metrics {
	m := &metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "curt", Name: "decisions_total", Help: "Decisions about links in the journal, by safety and by whether a human or the policy decided.",
		}, []string{"safety", "by"}),
		effects: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "curt", Name: "decision_effect_seconds",
			Help:    "Time from a moderator's decision in the journal to its effect on all redirects of this process.",
			Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, 1, 10},
		}),
	}
	if reg == nil {
		return m
	}
	reg.MustRegister(m.decisions, m.effects, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "curt", Name: "bans", Help: "Active bans.",
	}, func() float64 { return float64(bans.Len()) }))
	for s := link.Clean; s <= link.Legal; s++ { // a sum of none is 0, and not missing
		for _, by := range []string{"policy", "person"} {
			m.decisions.WithLabelValues(s.String(), by)
		}
	}
	return m
}

// decided counts an entry that decides about a link.
func (m *metrics) decided(e *moderation.Entry) {
	by := "person"
	if e.Actor == moderation.ActorPolicy {
		by = "policy"
	}
	m.decisions.WithLabelValues(e.Safety.String(), by).Inc()
}

func (m *metrics) effect(took time.Duration) { m.effects.Observe(took.Seconds()) }
