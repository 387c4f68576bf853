package server

import (
	"context"
	"log/slog"
)

// reload reads the blocklists anew each time that somebody asks, until ctx ends.
func (s *Server) reload(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.asked:
			if err := s.ready.blocked.Reload(ctx); err != nil {
				s.log.ErrorContext(ctx, "blocklists cannot be used; their versions before stay", slog.Any("err", err))
			}
		}
	}
}
