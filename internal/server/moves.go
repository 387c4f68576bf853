package server

import (
	"context"
	"log/slog"
	"time"

	"curt/internal/feed"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

// heard tells whoever remembers whose a link is that some have changed; nil = nobody knows which.
func (s *Server) heard(changes []link.Change) {
	keys := make([]link.Key, len(changes))
	for i := range changes {
		keys[i] = changes[i].Key
	}
	if s.clicks.fold != nil {
		s.clicks.fold.Changed(keys...)
	}
	if s.clicks.history != nil {
		s.clicks.history.Changed(keys...)
	}
	if s.events.worker != nil {
		s.events.worker.Changed(keys...)
	}
	if s.desk != nil {
		s.desk.Changed(keys...)
	}
}

// hearChanges does what the cache does for a server without one.
func (s *Server) hearChanges(ctx context.Context) error {
	var unread repeatlog.Condition
	at, begun := link.Sequence(0), false
	follower := feed.Follower[link.Sequence, link.Change]{
		Name: "moves", Page: 1000,
		Log: feed.Log[link.Sequence, link.Change]{
			Read: s.links.Changes, Head: s.links.Head, At: func(c *link.Change) link.Sequence { return c.Sequence },
		},
		Position: func(context.Context) (link.Sequence, bool, error) { return at, begun, nil },
		Apply: func(_ context.Context, changes []link.Change, to link.Sequence) error {
			at = to
			s.heard(changes)
			return nil
		},
		Rebuild: func(ctx context.Context) (err error) {
			if at, err = s.links.Head(ctx); err == nil {
				begun = true
				s.heard(nil)
			}
			return err
		},
	}
	for ; ctx.Err() == nil; wait(ctx, followEvery, nil) {
		if err := follower.CatchUp(ctx); err == nil {
			if sum, due := unread.Over(time.Now()); due {
				s.log.InfoContext(ctx, "change log can be read again", sum)
			}
		} else if ctx.Err() == nil {
			if again, due := unread.Met(time.Now()); due {
				s.log.WarnContext(ctx, "change log cannot be read", slog.Any("err", err), again)
			}
		}
	}
	return nil
}
