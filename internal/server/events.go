package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/kafka"
	"curt/internal/clicks"
	"curt/internal/config"
	"curt/internal/worker"
)

// events is the way of clicks through Kafka, where CURT_EVENTS says so: out of the click log
// of those who capture, and into ClickHouse by those who work.
type events struct {
	producer *kafka.Producer
	shipper  *clicks.Shipper // nil = clicks are counted here, or nobody captures any
	enlister *enlister       // with shipper
	worker   *worker.Worker  // nil = others work
	store    *lateClicks     // of worker
}

// kafkaOf reads CURT_EVENTS, which is set.
func kafkaOf(cfg config.Config) (kafka.Config, error) {
	c, err := kafka.Parse(cfg.Events)
	if err != nil {
		return c, &config.Error{Setting: "CURT_EVENTS", Value: config.Redact(cfg.Events), Want: err.Error()}
	}
	return c, nil
}

// checkEvents looks at what CURT_EVENTS says.
func checkEvents(cfg config.Config) error {
	if cfg.Events == "" {
		return nil
	}
	_, err := kafkaOf(cfg)
	return err
}

// openShipper has clicks sent to Kafka. It connects when it sends first: a Kafka that is away
// keeps no server from starting.
//
// Before it takes a click, others are to know that it may; but it starts without that, too.
func (s *Server) openShipper(ctx context.Context, began time.Time) error {
	c, err := kafkaOf(s.config)
	if err != nil {
		return err
	}
	e, p := &s.events, &s.clicks
	if e.producer, err = kafka.NewProducer(c); err != nil {
		return err
	}
	s.closers = append(s.closers, func() error { e.producer.Close(); return nil })
	state := filepath.Join(s.config.Data, "clicks.shipped")
	if e.enlister, err = s.newEnlister(began, state); err != nil {
		return err
	}
	if err := e.enlister.try(ctx); err != nil {
		s.log.WarnContext(ctx, "others may not wait for the clicks of this server: it cannot be written down", slog.Any("err", err))
	}
	e.shipper = clicks.NewShipper(clicks.ShipperConfig{
		Log: p.log, Sink: e.producer, State: state,
		Instance: p.capture.Instance(), Began: e.enlister.sender.Began, Logger: s.log, Paused: s.config.Fold == "pause",
	})
	return nil
}

// capturing takes clicks out of the ring. That others know of them is seen to as long as there may
// be more.
func (s *Server) capturing() []loop {
	loops := []loop{{"capture", s.clicks.capture.Run}}
	if e := s.events.enlister; e != nil {
		loops = append(loops, loop{"senders", e.Run})
	}
	return loops
}

// folding takes clicks on from the click log.
func (s *Server) folding() loop {
	if s.events.shipper != nil {
		return loop{"clicks to Kafka", s.events.shipper.Run}
	}
	return loop{"fold", s.clicks.fold.Run}
}

// openWorker has clicks brought from Kafka to ClickHouse, where that is this server's.
func (s *Server) openWorker(context.Context) error {
	if s.config.Events == "" {
		return nil
	}
	c, err := kafkaOf(s.config)
	if err != nil {
		return err
	}
	keep, err := s.config.Retentions()
	if err != nil {
		return err
	}
	e := &s.events
	e.store = &lateClicks{log: s.log, open: func(ctx context.Context) (*clickhouse.Store, error) {
		return clickhouse.Open(ctx, clickhouse.Config{URL: s.config.Analytics})
	}}
	s.closers = append(s.closers, e.store.Close)
	e.worker = worker.New(worker.Config{
		Kafka: c, Store: e.store, Workspaces: s.workspaces, KeepDays: keep.Of, Logger: s.log,
	})
	return nil
}

// lateClicks is ClickHouse, opened when somebody asks for it first: it may come after the
// server. Meanwhile clicks wait in Kafka.
type lateClicks struct {
	open func(context.Context) (*clickhouse.Store, error)
	log  *slog.Logger

	mu     sync.Mutex
	store  *clickhouse.Store // guarded by mu; nil = not open yet
	closed bool              // guarded by mu
}

var errClosed = errors.New("closed")

// opened returns the store, and opens it if need be: whoever asks meanwhile waits, for as
// long as a connection may take.
func (l *lateClicks) opened(ctx context.Context) (*clickhouse.Store, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fmt.Errorf("ClickHouse: %w", errClosed)
	}
	if l.store == nil {
		store, err := l.open(ctx)
		if err != nil {
			return nil, err
		}
		l.store = store
	}
	return l.store, nil
}

// Insert implements worker.Store.
func (l *lateClicks) Insert(ctx context.Context, token string, rows []clickhouse.Row) error {
	store, err := l.opened(ctx)
	if err != nil {
		return err
	}
	return store.Insert(ctx, token, rows)
}

// Advance implements worker.Store.
func (l *lateClicks) Advance(ctx context.Context, marks []clickhouse.Watermark) error {
	store, err := l.opened(ctx)
	if err != nil {
		return err
	}
	return store.Advance(ctx, marks)
}

// Excuse implements worker.Store.
func (l *lateClicks) Excuse(ctx context.Context, topic string, partition uint32, now time.Time) error {
	store, err := l.opened(ctx)
	if err != nil {
		return err
	}
	return store.Excuse(ctx, topic, partition, now)
}

// Progress is that of clickhouse.Store.
func (l *lateClicks) Progress(ctx context.Context, now time.Time) (clickhouse.Progress, error) {
	store, err := l.opened(ctx)
	if err != nil {
		return clickhouse.Progress{}, err
	}
	return store.Progress(ctx, now)
}

// Close closes the store, if it is open.
func (l *lateClicks) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.store == nil {
		return nil
	}
	return l.store.Close()
}

// countEvents offers the counters of the way through Kafka.
func (s *Server) countEvents() {
	m, e := s.metrics, &s.events
	if e.shipper != nil {
		m.Counter("curt_events_sent_total", "Clicks that Kafka has acknowledged.", func() uint64 { return e.shipper.Stats().Events })
		m.Counter("curt_events_send_failures_total", "Times that sending to Kafka began again.", func() uint64 { return e.shipper.Stats().Failures })
		m.Gauge("curt_events_waiting_bytes", "Bytes of the click log that Kafka has not acknowledged.", func() float64 {
			return float64(s.clicks.log.Behind(e.shipper.Stats().Acked))
		})
		m.Gauge("curt_events_unsent_seconds", "Time since Kafka had every click of this server.", func() float64 {
			at := e.shipper.Stats().Promised
			if at.IsZero() {
				at = s.began
			}
			return max(0, time.Since(at).Seconds())
		})
		m.Gauge("curt_events_enlisted", "1 once those who show statistics know that this server may hold clicks.", func() float64 {
			if e.enlister.Healthy() != nil {
				return 0
			}
			return 1
		})
	}
	if e.worker == nil {
		return
	}
	w := e.worker
	m.Gauge("curt_worker_partitions", "Partitions that this worker has.", func() float64 { return float64(w.Stats().Partitions) })
	m.Gauge("curt_worker_lag_events", "Records in these partitions that are not in ClickHouse yet.", func() float64 { return float64(w.Stats().Lag) })
	m.Counter("curt_worker_rows_total", "Clicks inserted into ClickHouse; of a block that is inserted again, once more.", func() uint64 { return w.Stats().Rows })
	m.Counter("curt_worker_blocks_total", "Blocks inserted.", func() uint64 { return w.Stats().Blocks })
	m.Counter("curt_worker_blocks_again_total", "Blocks inserted again because a partition changed hands.", func() uint64 { return w.Stats().Again })
	m.Counter("curt_worker_repeated_total", "Clicks that Kafka had twice, and that count once.", func() uint64 { return w.Stats().Repeated })
	m.Counter("curt_worker_dead_letters_total", "Records that nobody can read, now in the topic of dead letters.", func() uint64 { return w.Stats().Poison })
	m.Counter("curt_worker_missing_total", "Records that Kafka no longer had when they were to be read.", func() uint64 { return w.Stats().Missing })
	m.Counter("curt_worker_insert_failures_total", "Inserts that failed and were tried again.", func() uint64 { return w.Stats().Failures })
	m.Counter("curt_worker_sessions_total", "Times that this worker had to join its group again.", func() uint64 { return w.Stats().Sessions })
	m.Counter("curt_worker_forgotten_total", "Instances whose repetitions in Kafka are no longer known as such.", func() uint64 { return w.Stats().Forgotten })
}

// eventDependencies are what /readyz says of the way through Kafka. Nobody waits for it, and
// so nothing of it is required.
func (s *Server) eventDependencies() (all []dependency) {
	if ship := s.events.shipper; ship != nil {
		all = append(all, dependency{"kafka", false, func() error { return ship.Stats().Err }}, dependency{"senders", false, s.events.enlister.Healthy})
	}
	if w := s.events.worker; w != nil {
		all = append(all, dependency{"clicks", false, w.Healthy})
	}
	return all
}
