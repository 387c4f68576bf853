package edit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"curt/internal/background"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/repeatlog"
	"curt/internal/shorten/judge"
)

const (
	// recheckPage is how many links are judged between two rests: some milliseconds.
	recheckPage = 200
	// recheckRest is how much longer than its work a Rechecker rests, so that it takes a
	// tenth of one core.
	recheckRest = 9
	// maxRevoked bounds the destinations that wait for their links to be found; more have a round begin.
	maxRevoked = 1000
	// recheckLook is how often it is asked whether there is reason for a round.
	recheckLook = time.Minute
)

// RecheckConfig is what [NewRechecker] needs.
type RecheckConfig struct {
	Every time.Duration // between the beginnings of two rounds, more than 0
	// Version changes when what is known about destinations does, as when a list was read
	// anew; then a round begins: at once by Poke. Nil = it never does.
	Version func() uint64
	Yielder background.Yielder // of rounds; nil = nothing is scheduled
	Log     *slog.Logger       // nil = none
}

// Rechecker judges links again long after they were made: a destination that was fine may
// be on a list today. What is graver than a link's safety becomes its safety, by the
// journal. Links that a person has decided about stay as they are.
type Rechecker struct {
	editor *Editor
	cfg    RecheckConfig
	poked  chan struct{} // capacity 1: the version may have changed

	mu      sync.Mutex
	revoked map[link.WorkspaceID]map[moderation.Hash]bool // destinations, by scope; guarded by mu
	waiting int                                           // how many; guarded by mu
	missed  bool                                          // too many were revoked; guarded by mu
}

// NewRechecker returns a Rechecker of the links of s.
func (s *Editor) NewRechecker(cfg RecheckConfig) *Rechecker {
	if cfg.Version == nil {
		cfg.Version = func() uint64 { return 0 }
	}
	cfg.Yielder = background.Or(cfg.Yielder)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Rechecker{editor: s, cfg: cfg, poked: make(chan struct{}, 1), revoked: map[link.WorkspaceID]map[moderation.Hash]bool{}}
}

// Poke has Run check the version now, or after the round that is under way. It never
// blocks.
func (r *Rechecker) Poke() {
	select {
	case r.poked <- struct{}{}:
	default: // it was said already
	}
}

// Revoked has Run recheck at once the links to a destination that was allowed and is refused, of one
// workspace or, if w is empty, of all. It never blocks.
func (r *Rechecker) Revoked(w link.WorkspaceID, digest moderation.Hash) {
	r.mu.Lock()
	if r.waiting >= maxRevoked {
		r.missed = true
	} else {
		if r.revoked[w] == nil {
			r.revoked[w] = map[moderation.Hash]bool{}
		}
		if !r.revoked[w][digest] {
			r.revoked[w][digest] = true
			r.waiting++
		}
	}
	r.mu.Unlock()
	r.Poke()
}

// Run goes through all links again and again, the newest first, until ctx ends; then it
// returns nil. The first round begins a minute after the start at the latest: what was
// listed while the process was down is found by it. What fails is logged, and the round begins anew.
func (r *Rechecker) Run(ctx context.Context) error {
	tick := time.NewTicker(min(recheckLook, r.cfg.Every))
	defer tick.Stop()
	var began time.Time
	var version uint64
	var failing repeatlog.Condition
	for {
		var now time.Time
		select {
		case <-ctx.Done():
			return nil
		case <-r.poked:
			now = time.Now()
		case now = <-tick.C:
		}
		err := r.recheckRevoked(ctx)
		known := r.cfg.Version()
		due := began.IsZero() || known != version || now.Sub(began) >= r.cfg.Every || r.takeMissed()
		if err == nil && due {
			err = r.round(ctx)
		}
		if err != nil {
			if ctx.Err() == nil {
				failing.Log(ctx, time.Now(), r.cfg.Log, slog.LevelError, "rechecking links failed, retrying", err)
			}
			continue
		}
		failing.LogRecovery(ctx, time.Now(), r.cfg.Log, "rechecking links recovered")
		if due {
			began, version = now, known
		}
	}
}

func (r *Rechecker) takeMissed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	missed := r.missed
	r.missed = false
	return missed
}

// recheckRevoked judges the links to destinations that were revoked. It reads all links of a workspace, or
// of all, without rests, and judges those alone.
func (r *Rechecker) recheckRevoked(ctx context.Context) error {
	for {
		w, digests := r.takeRevoked()
		if digests == nil {
			return nil
		}
		led := func(l *link.Link) bool {
			return digests[moderation.DigestOf(l.Destination)] || l.Fallback != "" && digests[moderation.DigestOf(l.Fallback)]
		}
		for after, more := link.Cursor(""), true; more; more = after != "" {
			var err error
			if after, err = r.page(ctx, link.Filter{Status: link.Active, Workspace: w}, after, led); err != nil {
				for digest := range digests {
					r.Revoked(w, digest)
				}
				return err
			}
		}
	}
}

// takeRevoked returns the destinations of one scope; nil = none waits.
func (r *Rechecker) takeRevoked() (w link.WorkspaceID, digests map[moderation.Hash]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w, digests := range r.revoked {
		delete(r.revoked, w)
		r.waiting -= len(digests)
		return w, digests
	}
	return "", nil
}

// round judges every link once; links to revoked destinations go first.
func (r *Rechecker) round(ctx context.Context) error {
	every := func(*link.Link) bool { return true }
	for after := link.Cursor(""); ; {
		begin := time.Now()
		var err error
		if after, err = r.page(ctx, link.Filter{Status: link.Active}, after, every); err != nil || after == "" {
			return err
		}
		if err := r.recheckRevoked(ctx); err != nil {
			return err
		}
		if !background.Sleep(ctx, recheckRest*time.Since(begin)) {
			return context.Cause(ctx)
		}
	}
}

// page judges some links of one page and returns where the next begins; "" = nowhere.
func (r *Rechecker) page(ctx context.Context, f link.Filter, after link.Cursor, which func(*link.Link) bool) (link.Cursor, error) {
	defer r.cfg.Yielder.Boost()()
	page, err := r.editor.store.List(ctx, f, link.Page{After: after, Limit: recheckPage})
	if err != nil {
		return "", fmt.Errorf("list links: %w", err)
	}
	for i := range page.Links {
		if !which(&page.Links[i]) {
			continue
		}
		if err := r.editor.recheck(ctx, time.Now(), &page.Links[i]); err != nil {
			return "", err
		}
	}
	return page.Next, nil
}

// RecheckOne judges a link that was judged a while before it was written.
func (s *Editor) RecheckOne(ctx context.Context, now time.Time, l *link.Link) error {
	return s.recheck(ctx, now, l)
}

// recheck judges a link as it was listed, and, where that is worse than its safety, once
// more as it is.
func (s *Editor) recheck(ctx context.Context, now time.Time, l *link.Link) error {
	s.metrics.rechecked.Inc()
	if worst := s.judge.Reassess(ctx, now, l); worst.Safety <= l.Safety {
		return nil
	}
	done, err := s.locks.lock(ctx, l.Key)
	if err != nil {
		return err
	}
	defer done()
	current, err := s.store.Get(ctx, l.Key)
	switch {
	case errors.Is(err, link.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("recheck: %w", err)
	}
	worst := s.judge.Reassess(ctx, now, &current)
	if current.Status != link.Active || worst.Safety <= current.Safety {
		return nil
	}
	stands, err := s.judge.EffectiveDecision(ctx, &current)
	switch {
	case err != nil:
		return err
	case stands.Actor != "" && stands.Actor != moderation.ActorPolicy, stands.Safety >= worst.Safety:
		return nil
	}
	if err := s.judge.Record(ctx, now, &judge.Proposal{Link: current, Judged: worst}); err != nil {
		return err
	}
	s.metrics.worse.Inc()
	if err := s.judge.Apply(ctx, now, current.Key); err != nil {
		return fmt.Errorf("recheck: %w", err)
	}
	return nil
}
