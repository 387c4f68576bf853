package shorten

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"curt/internal/abuse"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/repeatlog"
)

const (
	// recheckPage is how many links are judged between two rests: some milliseconds.
	recheckPage = 200
	// recheckRest is how much longer than its work a Rechecker rests, so that it takes a
	// tenth of one core.
	recheckRest = 9
	// recheckLook is how often it is asked whether there is reason for a round.
	recheckLook = time.Minute
)

// RecheckConfig is what [NewRechecker] needs.
type RecheckConfig struct {
	Every time.Duration // between the beginnings of two rounds, more than 0
	// Edition changes when what is known about destinations does, as when a list was read
	// anew; then a round begins: at once by Poke. Nil = it never does.
	Edition func() uint64
	// Work is called by what computes for long, which calls done when it rests; nil = it
	// is nobody's business.
	Work func() (done func())
	Log  *slog.Logger // nil = none
}

// Rechecker judges links again long after they were made: a destination that was fine may
// be on a list today. What is graver than a link's safety becomes its safety, by the
// journal. Links that a person has decided about stay as they are.
type Rechecker struct {
	editor *Editor
	cfg    RecheckConfig
	poked  chan struct{} // capacity 1: the edition may be another
}

// NewRechecker returns a Rechecker of the links of s.
func (s *Editor) NewRechecker(cfg RecheckConfig) *Rechecker {
	if cfg.Edition == nil {
		cfg.Edition = func() uint64 { return 0 }
	}
	if cfg.Work == nil {
		cfg.Work = func() func() { return func() {} }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Rechecker{s, cfg, make(chan struct{}, 1)}
}

// Poke has the edition looked at now. During a round it is looked at behind it. It never
// blocks.
func (r *Rechecker) Poke() {
	select {
	case r.poked <- struct{}{}:
	default: // it was said already
	}
}

// Run goes through all links again and again, the newest first, until ctx ends; then it
// returns nil. The first round begins a minute after the start at the latest: what was
// listed while the process was down is found by it. What fails is logged, and the round begins anew.
func (r *Rechecker) Run(ctx context.Context) error {
	tick := time.NewTicker(min(recheckLook, r.cfg.Every))
	defer tick.Stop()
	var began time.Time
	var edition uint64
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
		known := r.cfg.Edition()
		if !began.IsZero() && known == edition && now.Sub(began) < r.cfg.Every {
			continue
		}
		if err := r.round(ctx); err != nil {
			if ctx.Err() == nil {
				if again, due := failing.Met(time.Now()); due {
					r.cfg.Log.ErrorContext(ctx, "links cannot be judged again; trying again", slog.Any("err", err), again)
				}
			}
			continue
		}
		if sum, due := failing.Over(time.Now()); due {
			r.cfg.Log.InfoContext(ctx, "links are judged again", sum)
		}
		began, edition = now, known
	}
}

// round judges every link once.
func (r *Rechecker) round(ctx context.Context) error {
	for after := link.Cursor(""); ; {
		begin := time.Now()
		var err error
		if after, err = r.page(ctx, after); err != nil || after == "" {
			return err
		}
		if !sleep(ctx, recheckRest*time.Since(begin)) {
			return context.Cause(ctx)
		}
	}
}

// page judges the links of one page and returns where the next begins; "" = nowhere.
func (r *Rechecker) page(ctx context.Context, after link.Cursor) (link.Cursor, error) {
	defer r.cfg.Work()()
	page, err := r.editor.store.List(ctx, link.Filter{Status: link.Active}, link.Page{After: after, Limit: recheckPage})
	if err != nil {
		return "", wrap("list links", err)
	}
	for i := range page.Links {
		if err := r.editor.recheck(ctx, time.Now(), &page.Links[i]); err != nil {
			return "", err
		}
	}
	return page.Next, nil
}

// recheck judges a link as it was listed, and, where that is worse than its safety, once
// more as it is.
func (s *Editor) recheck(ctx context.Context, now time.Time, l *link.Link) error {
	s.court.metrics.rechecked.Inc()
	if worst := s.court.rejudge(ctx, now, l); worst.Safety <= l.Safety {
		return nil
	}
	done, err := s.turns.wait(ctx, l.Key)
	if err != nil {
		return err
	}
	defer done()
	current, err := s.store.Get(ctx, l.Key)
	switch {
	case errors.Is(err, link.ErrNotFound):
		return nil
	case err != nil:
		return wrap("judge again", err)
	}
	worst := s.court.rejudge(ctx, now, &current)
	if current.Status != link.Active || worst.Safety <= current.Safety {
		return nil
	}
	stands, err := s.court.decided(ctx, &current)
	switch {
	case err != nil:
		return err
	case stands.Actor != "" && stands.Actor != moderation.ActorPolicy, stands.Safety >= worst.Safety:
		return nil
	}
	if err := s.court.writeDown(ctx, now, &proposal{current, worst}); err != nil {
		return err
	}
	s.court.metrics.worse.Inc()
	_, err = s.court.moderator.Settle(ctx, now, current.Key)
	return wrap("judge again", err)
}

// rejudge judges where a link leads that is there: as assess, but for what is known of
// whoever asked for it, and it refuses nothing.
func (c *court) rejudge(ctx context.Context, now time.Time, l *link.Link) judgement {
	f := abuse.Facts{Workspace: l.Workspace, Maker: l.CreatedBy, Change: true}
	worst, err := c.weigh(ctx, now, f, ofLink(l), func(judgement, *abuse.Facts) error { return nil })
	if err != nil { // what is no URL is refused when it is followed
		return judgement{Decision: abuse.Decision{Safety: link.Clean}}
	}
	return worst
}
