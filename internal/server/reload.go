package server

import (
	"context"
	"errors"
	"log/slog"
)

// reload reads lists, words and the files of signals anew each time that somebody asks, until ctx ends.
func (s *Server) reload(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.asked:
			var errs []error
			if b := s.ready.blocked; b != nil {
				errs = append(errs, b.Reload(ctx))
			}
			if w := s.ready.words; w != nil {
				errs = append(errs, w.Reload(ctx))
			}
			if f := s.ready.sources; f != nil {
				errs = append(errs, f.Reload(ctx))
			}
			if err := errors.Join(errs...); err != nil {
				s.log.ErrorContext(ctx, "lists cannot be used; their versions before stay", slog.Any("err", err))
			}
		}
	}
}
