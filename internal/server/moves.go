package server

import (
	"context"
	"errors"
	"log/slog"
	"time"

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
	const atOnce = 1000
	var unread repeatlog.Condition
	at, begun := link.Sequence(0), false
	for ; ctx.Err() == nil; wait(ctx, followEvery, nil) {
		head, err := s.links.Head(ctx)
		if err == nil && (!begun || head < at) {
			at, begun = head, true
			s.heard(nil)
		}
		for err == nil && at < head {
			var changes []link.Change
			if changes, err = s.links.Changes(ctx, at, atOnce); err == nil && len(changes) > 0 {
				at = changes[len(changes)-1].Sequence
				s.heard(changes)
			} else if err == nil {
				break
			}
		}
		if errors.Is(err, link.ErrConflict) { // trimmed
			begun, err = false, nil
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			if again, due := unread.Met(time.Now()); due {
				s.log.WarnContext(ctx, "change log cannot be read", slog.Any("err", err), again)
			}
		default:
			if sum, due := unread.Over(time.Now()); due {
				s.log.InfoContext(ctx, "change log can be read again", sum)
			}
		}
	}
	return nil
}
