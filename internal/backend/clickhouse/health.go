package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"curt/internal/analytics"
)

// probeEvery is how often Run looks whether the server answers.
const probeEvery = 2 * time.Second

// Run brings the tables up to date, however long the server is away, and from then on looks
// whether it answers, until ctx ends; then it returns nil. The Store may be asked before.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for prepared, told := false, false; ; {
		err := s.look(ctx, prepared)
		away := err != nil
		prepared = prepared || !away
		switch {
		case ctx.Err() != nil:
			return nil
		case away && !told:
			s.config.Log.WarnContext(ctx, "ClickHouse is away: there are no statistics", slog.Any("err", err))
		case !away && told:
			s.config.Log.InfoContext(ctx, "ClickHouse answers")
		}
		told = away
		s.state.Store(state(away))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look asks the server for as little as possible.
func (s *Store) look(ctx context.Context, prepared bool) error {
	if !prepared {
		return s.Prepare(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, questionLimit)
	defer cancel()
	p, err := s.Progress(ctx, time.Now()) // which shows, too, how fresh statistics are
	if err == nil {
		s.known.Store(&p)
	}
	return err
}

// How the server was found; 0 = nobody has looked.
const (
	answers = 1
	isAway  = 2
)

func state(away bool) int32 {
	if away {
		return isAway
	}
	return answers
}

// Healthy returns nil while the server answers, as Run found out last. It does no I/O.
func (s *Store) Healthy() error {
	if s.state.Load() != answers {
		return fmt.Errorf("%w: ClickHouse does not answer", analytics.ErrUnavailable)
	}
	return nil
}

// refusal is why a question is not asked: who knows that the server is away need not wait
// until it does not answer.
func (s *Store) refusal() error {
	if s.state.Load() == isAway {
		return s.Healthy()
	}
	return nil
}

// Known is how far clicks had come when that was asked last. It does no I/O.
func (s *Store) Known() Progress {
	if p := s.known.Load(); p != nil {
		return *p
	}
	return Progress{}
}

// Stats are counters since the start.
type Stats struct {
	Questions uint64
	Failures  uint64 // of those, not answered, or not in time
}

// Stats returns the counters.
func (s *Store) Stats() Stats { return Stats{s.asked.Load(), s.failed.Load()} }

// Check reads an address without asking anybody. The error is ErrUnfit.
func Check(url string) error {
	s, err := New(Config{URL: url})
	if err != nil {
		return err
	}
	return s.Close()
}

// Probe connects once and says what the server is. It changes nothing there.
func Probe(ctx context.Context, url string) (what string, err error) {
	s, err := New(Config{URL: url})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.fit(ctx); err != nil {
		return "", err
	}
	var version string
	var tables uint64
	err = s.conn.QueryRow(ctx, "SELECT version(), count() FROM system.tables WHERE database = currentDatabase() AND name = 'clicks'").Scan(&version, &tables)
	if err != nil {
		return "", fmt.Errorf("cannot be asked: %w", err)
	}
	if tables == 0 {
		return "ClickHouse " + version + ", without our tables, which curt migrate makes, or the first start of a worker", nil
	}
	return "ClickHouse " + version + ", with our tables", nil
}
