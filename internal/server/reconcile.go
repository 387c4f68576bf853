package server

import (
	"context"
	"errors"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/postgres"
	"curt/internal/config"
	"curt/internal/link"
	"curt/internal/worker"
)

// CompareClicks compares what Kafka has of some hours with the clicks in ClickHouse; progress
// is told how many records of how many were read. An error of the settings is a
// [*config.Error].
func CompareClicks(ctx context.Context, cfg config.Config, store *clickhouse.Store, from, to time.Time, progress func(done, all int64)) ([]worker.Compared, error) {
	c, err := kafkaOf(cfg)
	if err != nil {
		return nil, err
	}
	all, err := worker.Compare(ctx, worker.Comparison{Kafka: c, Store: store, From: from, To: to, Progress: progress})
	if err != nil {
		return nil, oneLine{err}
	}
	return all, nil
}

// ReplayClicks brings clicks from Kafka once more to ClickHouse: what r asks for, of the Kafka
// and for the workspaces of the settings. An error of these is a [*config.Error].
func ReplayClicks(ctx context.Context, cfg config.Config, store *clickhouse.Store, r worker.Replay) (done worker.Replayed, err error) {
	if cfg.Events == "" {
		return done, &config.Error{Setting: "CURT_EVENTS", Value: "", Want: "want kafka://host:port/topic here"}
	}
	if r.Kafka, err = kafkaOf(cfg); err != nil {
		return done, err
	}
	links, err := postgres.OpenLinks(ctx, postgres.LinksConfig{URL: cfg.Links})
	if err != nil {
		return done, wrongDatabase("CURT_LINKS", cfg.Links, err)
	}
	defer func() { err = errors.Join(err, links.Close()) }()
	keep, err := cfg.Retentions()
	if err != nil {
		return done, &config.Error{Setting: "CURT_RAW_RETENTION_OF", Value: cfg.RawRetentionOf, Want: err.Error()}
	}
	r.Store, r.KeepDays = store, keep.Of
	r.Workspaces = func(ctx context.Context, keys []link.Key) ([]string, error) { return workspacesOf(ctx, links, keys) }
	if done, err = worker.Repeat(ctx, r); err != nil {
		return done, oneLine{err}
	}
	return done, nil
}
