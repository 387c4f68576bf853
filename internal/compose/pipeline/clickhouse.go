package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"curt/internal/analytics"
	"curt/internal/backend/clickhouse"
	"curt/internal/clicks/rollup"
	"curt/internal/compose"
	"curt/internal/datafolder"
	"curt/internal/settings"
	"curt/internal/telemetry"
)

// openCounted opens the store of clicks that workers bring to ClickHouse, for servers that show
// statistics, and for workers, which finalize its days. It connects when the server runs: a
// ClickHouse that is away keeps no server from starting.
func (p *Pipeline) openCounted(_ context.Context, c *compose.Capability) error {
	if _, err := os.Stat(filepath.Join(p.env.Config.Data, "clicks.db")); !errors.Is(err, fs.ErrNotExist) {
		return datafolder.OwnCounts(p.env.Config)
	}
	var all []*clickhouse.Store
	for i, cfg := range settings.ClickHouses(p.env.Config, p.env.Log) {
		cfg.Senders = p.senders
		store, err := clickhouse.New(cfg)
		if err != nil {
			return settings.WrongClickHouse(p.env.Config, err)
		}
		c.OnClose(store.Close)
		all = append(all, store)
		if cfg.Position > 0 {
			c.Need(fmt.Sprintf("clickhouse replica %d", cfg.Position), false, store.Able)
		}
		if p.env.Roles.Worker {
			name := ofReplica("finalize days", i)
			c.Run(name, p.stores.Once(name, upkeep{store: store, log: cfg.Log}.finalizeDays))
		}
	}
	p.ClickHouse = clickhouse.NewReplicas(all...)
	p.recent = analytics.NewRecent(p.ClickHouse)
	c.Run("clickhouse", p.ClickHouse.Run)
	c.Need("clickhouse", false, p.ClickHouse.Healthy)
	if p.env.Roles.Worker {
		c.Run("senders that ended", p.stores.Once("senders", func(ctx context.Context) error { return dismissSenders(ctx, p.ClickHouse, p.stores, p.env.Log) }))
	}
	return nil
}

// Stats are where statistics are read.
func (p *Pipeline) Stats() analytics.Reader {
	if p.ClickHouse != nil {
		return p.recent
	}
	return analytics.NewEmbedded(p.rollups, p.fold)
}

// RawClicks is where clicks are read one by one.
func (p *Pipeline) RawClicks() analytics.History {
	if p.ClickHouse != nil {
		return p.ClickHouse
	}
	return p.history
}

// Freshness is that of the statistics. It does no I/O.
func (p *Pipeline) Freshness() rollup.Freshness {
	if p.ClickHouse != nil {
		return p.ClickHouse.LastProgress().Freshness
	}
	return p.fold.Freshness()
}

// CountedUntil is when the statistics were complete last; began while that is not known. Where several
// servers count it is up to when clicks are complete: one that died holds that back.
func (p *Pipeline) CountedUntil(began time.Time) time.Time {
	fresh := p.Freshness()
	at := fresh.Updated
	if p.ClickHouse != nil {
		at = fresh.Complete
	}
	if at.IsZero() {
		return began
	}
	return at
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// countClickHouse offers the counters of the statistics that are elsewhere.
func (p *Pipeline) countClickHouse(m *telemetry.Metrics) {
	store := p.ClickHouse
	if store == nil {
		return
	}
	m.Gauge("curt_clickhouse_up", "1 while ClickHouse is available.", func() float64 {
		if store.Healthy() != nil {
			return 0
		}
		return 1
	})
	m.Gauge("curt_senders_silent", "Senders of clicks without a watermark for ten minutes, which statistics wait for.", func() float64 {
		return float64(len(p.Silent()))
	})
	for _, one := range store.All() {
		if one.Config.Position == 0 {
			continue
		}
		place := strconv.Itoa(one.Config.Position)
		m.GaugeOf("curt_replica_up", "1 while this replica of ClickHouse is available.", "replica", place, func() float64 { return oneIf(one.Healthy() == nil) })
		m.GaugeOf("curt_replica_filling", "1 while this replica of ClickHouse is being filled from another one, and not queried.", "replica", place, func() float64 { return oneIf(one.LastReplica().Filling) })
		m.GaugeOf("curt_replica_filled_days", "Days that the refill of this replica of ClickHouse has completed.", "replica", place, func() float64 { return float64(one.LastReplica().Days) })
	}
	m.Counter("curt_clickhouse_questions_total", "Statistics queries to ClickHouse.", func() uint64 { return store.Stats().Questions })
	m.Counter("curt_statistics_stale_total", "Statistics answered from memory because ClickHouse was unavailable or slow.", p.recent.Stale)
	m.Counter("curt_clickhouse_failures_total", "Statistics queries to ClickHouse that failed or timed out.", func() uint64 { return store.Stats().Failures })
}
