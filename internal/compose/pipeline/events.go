package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/backend/kafka"
	"curt/internal/clicks/ship"
	"curt/internal/compose"
	"curt/internal/settings"
	"curt/internal/worker"
)

// openShipper has clicks sent to Kafka. It connects when it sends first: a Kafka that is away
// keeps no server from starting.
//
// Before it takes a click, others are to know that it may; but it starts without that, too.
func (p *Pipeline) openShipper(ctx context.Context, c *compose.Capability, began time.Time) (err error) {
	if p.producer, err = kafka.NewProducer(*p.env.Kafka); err != nil {
		return err
	}
	c.OnClose(func() error { p.producer.Close(); return nil })
	state := filepath.Join(p.env.Config.Data, "clicks.shipped")
	if p.enlister, err = p.newEnlister(began, state); err != nil {
		return err
	}
	if err := p.enlister.try(ctx); err != nil {
		p.env.Log.WarnContext(ctx, "registering this server as a sender of clicks failed, retrying", slog.Any("err", err))
	}
	p.shipper = ship.New(ship.Config{
		Log: p.log, Sink: p.producer, State: state,
		Instance: p.capture.Instance(), Began: p.enlister.sender.Began, Logger: p.env.Log, Paused: p.env.Config.Fold == "pause",
	})
	c.Loops = append(c.Loops,
		compose.Loop{Name: "clicks to Kafka", Stage: compose.Fold, Run: p.shipper.Run},
		compose.Loop{Name: "senders", Stage: compose.Capture, Run: p.enlister.Run}) // as long as there may be more clicks
	c.Need("kafka", false, func() error { return p.shipper.Stats().Err })
	c.Need("senders", false, p.enlister.Healthy)
	return nil
}

// openWorker has clicks brought from Kafka to ClickHouse, where that is this server's.
func (p *Pipeline) openWorker(_ context.Context, c *compose.Capability) error {
	keep, err := p.env.Config.Retentions()
	if err != nil {
		return err
	}
	for i, cfg := range settings.ClickHouses(p.env.Config, p.env.Log) {
		store, err := clickhouse.New(cfg)
		if err != nil {
			return settings.WrongClickHouse(p.env.Config, err)
		}
		c.OnClose(store.Close)
		w := worker.New(worker.Config{
			Kafka: *p.env.Kafka, Store: &lazyClicks{Store: store}, Workspaces: p.workspaces, RetentionDays: keep.Of, Logger: cfg.Log,
		})
		p.workers = append(p.workers, w)
		c.Run(ofReplica("clicks from Kafka", i), w.Run)
		c.Need(ofReplica("clicks", i), false, undelivered(store.DB, w.Healthy))
		if p.ClickHouse == nil {
			continue
		}
		mine := p.ClickHouse.All()[i]
		watch := &watched{store: mine, first: w.First, log: cfg.Log}
		r := &reconciler{
			replay: worker.Replay{Kafka: *p.env.Kafka, Workspaces: p.workspaces, RetentionDays: keep.Of}, store: mine, log: cfg.Log,
			replicas: p.ClickHouse, inserted: w.Inserted, keep: time.Duration(keep.Least()) * 24 * time.Hour,
		}
		p.watched, p.reconcilers = append(p.watched, watch), append(p.reconcilers, r)
		c.Run(ofReplica("watch statistics", i), watch.run)
		name := ofReplica("reconcile clicks", i)
		c.Run(name, p.stores.Once(name, r.run))
	}
	return nil
}

// undelivered says of the error of a worker which server clicks do not come to.
func undelivered(to *clickdb.DB, healthy func() error) func() error {
	return func() error {
		if err := healthy(); err != nil {
			return &undeliveredError{err, to.Address() + " gets no clicks: " + to.Reason(err)}
		}
		return nil
	}
}

// undeliveredError is an error of a worker.
type undeliveredError struct {
	error

	public string
}

// PublicMessage is what an operator may read.
func (e *undeliveredError) PublicMessage() string { return e.public }

// Unwrap implements errors.Is.
func (e *undeliveredError) Unwrap() error { return e.error }

// ofReplica is the name of something that each replica has; that of the first one is plain.
func ofReplica(name string, i int) string {
	if i == 0 {
		return name
	}
	return fmt.Sprintf("%s %d", name, i+1)
}

// lazyClicks is ClickHouse, prepared at its first use: it may start after the server. Meanwhile
// clicks wait in Kafka.
type lazyClicks struct {
	*clickhouse.Store

	mu sync.Mutex // held while the store is prepared
	id *string    // guarded by mu: as of the last session; nil = it is not prepared
}

// Identify implements worker.Identified. A server that was emptied is prepared again, and is another one.
func (l *lazyClicks) Identify(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.id = nil
	if err := l.Prepare(ctx); err != nil {
		return "", err //nolint:wrapcheck // the store's own
	}
	r, err := l.Replica(ctx)
	if err != nil {
		return "", err //nolint:wrapcheck // the store's own
	}
	l.id = &r.ID
	return r.ID, nil
}

// prepare returns an error if the server is not the one that the session began with: what is written
// to an emptied one would be written a second time by its own group. A server alone has one group.
func (l *lazyClicks) prepare(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.id == nil {
		return fmt.Errorf("%w: ClickHouse is not prepared", kafka.ErrLeave)
	}
	if l.Config.Position == 0 {
		return nil
	}
	err := l.Is(ctx, *l.id)
	if errors.Is(err, clickdb.ErrReplaced) || errors.Is(err, clickdb.ErrUnfit) {
		err = fmt.Errorf("%w: %w", kafka.ErrLeave, err)
	}
	return err //nolint:wrapcheck // the store's own
}

// Insert implements worker.Store.
func (l *lazyClicks) Insert(ctx context.Context, token string, rows []clickdb.Row) error {
	if err := l.prepare(ctx); err != nil {
		return err
	}
	return l.Store.Insert(ctx, token, rows)
}

// NoteGap implements worker.Identified. A server alone has nobody to be filled from.
func (l *lazyClicks) NoteGap(ctx context.Context) error {
	if l.Config.Position == 0 {
		return nil
	}
	if err := l.prepare(ctx); err != nil {
		return err
	}
	return l.Store.NoteGap(ctx)
}

// Advance implements worker.Store.
func (l *lazyClicks) Advance(ctx context.Context, marks []watermarks.Watermark) error {
	if err := l.prepare(ctx); err != nil {
		return err
	}
	return l.Store.Advance(ctx, marks)
}

// ForgiveOutage implements worker.Store.
func (l *lazyClicks) ForgiveOutage(ctx context.Context, topic string, partition uint32, now time.Time) error {
	if err := l.prepare(ctx); err != nil {
		return err
	}
	return l.Store.ForgiveOutage(ctx, topic, partition, now)
}
