package server

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"curt/internal/analytics"
	"curt/internal/backend/clickhouse"
	"curt/internal/clicks"
	"curt/internal/config"
	"curt/internal/repeatlog"
)

// openCounted makes the store of clicks that workers bring to ClickHouse, for whoever shows
// statistics, and for workers, who settle its days. It connects when the server runs: a
// ClickHouse that is away keeps no server from starting.
func (s *Server) openCounted(context.Context) error {
	if !config.IsClickHouse(s.config.Analytics) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(s.config.Data, "clicks.db")); !errors.Is(err, fs.ErrNotExist) {
		return ownCounts(s.config)
	}
	c := counting(s.config, s.log)
	c.Senders = s.senders
	store, err := clickhouse.New(c)
	if err != nil {
		return wrongClickHouse(s.config, err)
	}
	s.clicks.counted = store
	s.closers = append(s.closers, store.Close)
	return nil
}

// counting is which ClickHouse the settings name, which are valid.
func counting(cfg config.Config, log *slog.Logger) clickhouse.Config {
	keep, _ := cfg.Retentions()
	return clickhouse.Config{URL: cfg.Analytics, KeepLeast: time.Duration(keep.Least()) * 24 * time.Hour, Log: log}
}

// settleEvery is how often a worker looks for days that are to be settled, settleRetry how
// often while ClickHouse is away.
const settleEvery, settleRetry = 5 * time.Minute, 10 * time.Second

// settle settles the days of ClickHouse that are over, until ctx ends. What fails is done at
// the next turn: meanwhile values are counted from the clicks themselves.
func (s *Server) settle(ctx context.Context) error {
	var failing repeatlog.Condition
	for ctx.Err() == nil {
		store, pause := s.clicks.counted, settleRetry
		if store.Healthy() == nil {
			pause = settleEvery
			days, err := store.Settle(ctx, time.Now())
			switch {
			case ctx.Err() != nil:
			case err != nil:
				if again, due := failing.Met(time.Now()); due {
					s.log.ErrorContext(ctx, "values of a day are not added up, it is tried again", slog.Any("err", err), again)
				}
			case days > 0:
				s.log.InfoContext(ctx, "values of days are added up", slog.Int("days", days))
			}
			if sum, due := failing.Over(time.Now()); due && err == nil {
				s.log.InfoContext(ctx, "days can be added up again", sum)
			}
		}
		wait(ctx, pause, nil)
	}
	return nil
}

// stats are where statistics are read.
func (p *pipeline) stats() analytics.Reader {
	if p.counted != nil {
		return p.counted
	}
	return analytics.NewEmbedded(p.rollups, p.fold)
}

// rawClicks is where clicks are read one by one.
func (s *Server) rawClicks() analytics.History {
	if s.clicks.counted != nil {
		return s.clicks.counted
	}
	return clickLog{s.clicks.history, s.questions}
}

// freshness is that of the statistics. It asks nobody.
func (p *pipeline) freshness() clicks.Freshness {
	if p.counted != nil {
		return p.counted.Known().Freshness
	}
	return p.fold.Freshness()
}

// behind is since when the statistics may lack a click; began while nobody knows. Where several
// servers count it is up to when clicks are complete: one that died holds that back.
func (p *pipeline) behind(began time.Time) time.Time {
	fresh := p.freshness()
	at := fresh.Updated
	if p.counted != nil {
		at = fresh.Complete
	}
	if at.IsZero() {
		return began
	}
	return at
}

// countClickHouse offers the counters of the statistics that are elsewhere.
func (s *Server) countClickHouse() {
	store := s.clicks.counted
	if store == nil {
		return
	}
	s.metrics.Gauge("curt_clickhouse_up", "1 while ClickHouse answers.", func() float64 {
		if store.Healthy() != nil {
			return 0
		}
		return 1
	})
	s.metrics.Gauge("curt_senders_silent", "Servers whose clicks are waited for, and that have said nothing for ten minutes.", func() float64 {
		return float64(len(s.clicks.silent()))
	})
	s.metrics.Counter("curt_clickhouse_questions_total", "Questions to ClickHouse for statistics.", func() uint64 { return store.Stats().Questions })
	s.metrics.Counter("curt_clickhouse_failures_total", "Questions that ClickHouse did not answer, or not in time.", func() uint64 { return store.Stats().Failures })
}

// clickHouse asks the server that is to have the statistics.
func (c *checker) clickHouse(ctx context.Context, cfg config.Config) {
	what, err := clickhouse.Probe(ctx, cfg.Analytics)
	if err != nil {
		err = &config.Error{Setting: "CURT_ANALYTICS", Value: config.Redact(cfg.Analytics), Want: oneLine{err}.Error()}
	}
	c.add("CURT_ANALYTICS="+config.Redact(cfg.Analytics)+": "+what, err)
}

// OpenCounted connects to the ClickHouse of the settings, for whoever looks after what is
// there. The caller closes the Store. An error of the settings is a [*config.Error].
func OpenCounted(ctx context.Context, cfg config.Config) (*clickhouse.Store, error) {
	if !config.IsClickHouse(cfg.Analytics) {
		return nil, noClickHouse(cfg)
	}
	store, err := clickhouse.Open(ctx, counting(cfg, nil))
	if err != nil {
		return nil, wrongClickHouse(cfg, err)
	}
	return store, nil
}

func noClickHouse(cfg config.Config) error {
	return &config.Error{Setting: "CURT_ANALYTICS", Value: config.Redact(cfg.Analytics), Want: "want clickhouse://user@host:9000/database here"}
}
