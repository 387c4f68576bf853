package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/kafka"
	"curt/internal/config"
)

// Topic says how a topic is made that is not there yet.
type Topic struct {
	Partitions int
	Retention  time.Duration
}

// Bounds of a topic: Kafka takes more partitions, and nobody shortens that many links.
const (
	maxPartitions = 1024
	maxRetention  = 365 * 24 * time.Hour
)

// Migrate makes what servers with these settings need and do not make for themselves: the
// topic of clicks, with that of its dead letters, and the tables of ClickHouse. It says what
// it did, also when it ends with an error. It may run at any time, beside servers and again.
func Migrate(ctx context.Context, cfg config.Config, t Topic) (done []string, err error) {
	switch {
	case cfg.Events == "":
		return []string{"nothing to do: CURT_EVENTS is unset, and servers bring their databases up to date themselves"}, nil
	case t.Partitions < 0 || t.Partitions > maxPartitions:
		return nil, &config.Error{Setting: "--partitions", Value: fmt.Sprint(t.Partitions), Want: fmt.Sprintf("want 1 to %d", maxPartitions)}
	case t.Retention != 0 && (t.Retention < time.Hour || t.Retention > maxRetention):
		return nil, &config.Error{Setting: "--retention", Value: t.Retention.String(), Want: "want 1h to 8760h"}
	}
	c, err := kafkaOf(cfg)
	if err != nil {
		return nil, err
	}
	made, err := kafka.Migrate(ctx, c, kafka.Topic{Partitions: t.Partitions, Retention: t.Retention})
	switch {
	case err != nil:
		return nil, oneLine{err}
	case made:
		done = append(done, "made the topic "+c.Topic)
	default:
		done = append(done, "the topic "+c.Topic+" is there")
	}
	if !strings.HasPrefix(cfg.Analytics, "clickhouse://") {
		return done, nil
	}
	store, err := clickhouse.Open(ctx, clickhouse.Config{URL: cfg.Analytics})
	if err != nil {
		return done, wrongClickHouse(cfg, err)
	}
	return append(done, "the tables of ClickHouse are up to date"), store.Close()
}

// wrongClickHouse makes a wrong setting of what no retry helps with.
func wrongClickHouse(cfg config.Config, err error) error {
	if !errors.Is(err, clickhouse.ErrUnfit) {
		return oneLine{err}
	}
	return &config.Error{Setting: "CURT_ANALYTICS", Value: config.Redact(cfg.Analytics), Want: err.Error()}
}
