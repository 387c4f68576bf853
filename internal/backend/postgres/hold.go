package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// ErrHeld says that another process has the database to itself.
var ErrHeld = errors.New("another curt uses this database")

const (
	// holdFor is how long a silent holder is believed to live; Run renews every second.
	holdFor = 10 * time.Second
	// holdWait lets a holder that died fall silent.
	holdWait  = holdFor + 2*time.Second
	holdPause = 250 * time.Millisecond

	// Its times are the server's alone: clocks of machines differ. A session's lock would
	// do, were there never a pooler in transaction mode.
	sqlHold = `INSERT INTO holder AS held (n, name, until) VALUES (1, $1, now() + $2::interval)
	ON CONFLICT (n) DO UPDATE SET name = excluded.name, until = excluded.until
	WHERE held.name = excluded.name OR held.until < now()`
	sqlEndHold = `DELETE FROM holder WHERE name = $1`
)

// hold takes or renews the hold; false = another has it.
func (s *Links) hold(ctx context.Context) (bool, error) {
	ctx, cancel := limited(ctx)
	defer cancel()
	rows, err := changed(ctx, s.write, sqlHold, s.config.Holder, holdFor)
	return rows > 0, err
}

// takeHold waits until the database is ours.
func (s *Links) takeHold(ctx context.Context) error {
	if s.config.Holder == "" {
		return nil
	}
	for began := time.Now(); ; {
		ours, err := s.hold(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("take the database: %w", err)
		case ours:
			return nil
		case time.Since(began) > holdWait:
			return fmt.Errorf("%w, and only one may for now", ErrHeld)
		case time.Since(began) < holdPause:
			s.config.Log.InfoContext(ctx, "waiting for another curt to let the database go", slog.Duration("at_most", holdWait))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(holdPause):
		}
	}
}

// keepHold renews the hold. While the database cannot be asked nobody else can take it
// without being seen here afterwards.
func (s *Links) keepHold(ctx context.Context) error {
	if s.config.Holder == "" {
		return nil
	}
	ours, err := s.hold(ctx)
	if err != nil || ours {
		return nil //nolint:nilerr // look has said that the database is away
	}
	return fmt.Errorf("taken over: %w", ErrHeld)
}

// endHold lets the next one in at once.
func (s *Links) endHold() {
	if s.config.Holder == "" || s.write == nil {
		return
	}
	ctx, cancel := limited(context.Background())
	defer cancel()
	_, err := s.write.Exec(ctx, sqlEndHold, s.config.Holder)
	if err != nil {
		s.config.Log.WarnContext(ctx, "the database was not let go; the next start waits", slog.Any("err", err))
	}
}
