// Package pipeline opens the way of a click from the answer to the statistics: the ring, the click
// log, and the roll-ups in SQLite or PostgreSQL; or Kafka, and workers that bring clicks from there
// to ClickHouse.
package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"curt/internal/analytics"
	"curt/internal/backend/clickhouse"
	"curt/internal/backend/kafka"
	"curt/internal/background"
	"curt/internal/clicks"
	"curt/internal/clicks/capture"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/fold"
	"curt/internal/clicks/history"
	"curt/internal/clicks/rollup"
	"curt/internal/clicks/ship"
	"curt/internal/compose"
	"curt/internal/compose/stores"
	"curt/internal/config"
	"curt/internal/link"
	"curt/internal/search"
	"curt/internal/telemetry"
	"curt/internal/worker"
)

// Pipeline is the way of a click. Its fields are set in Open.
type Pipeline struct {
	env    *compose.Env
	stores *stores.Stores
	ranks  Ranks

	// Of a server that serves.
	Ring    *capture.Ring // where clicks are recorded
	log     *clicklog.Log
	capture *capture.Capture
	history *history.History
	taken   capture.Loss // what the end of the process before cost
	fold    *fold.Fold   // nil, as rollups, where CURT_EVENTS is set
	rollups rollups

	// Where CURT_EVENTS is set: out of the click log of servers that capture, and into ClickHouse
	// by workers.
	producer *kafka.Producer
	shipper  *ship.Shipper    // nil = clicks are counted here, or none are captured
	enlister *enlister        // with shipper
	workers  []*worker.Worker // one for each replica of ClickHouse; none = others work

	created *created // links that go to Kafka; nil = others send them

	ClickHouse  *clickhouse.Replicas // of clicks that went through Kafka; nil = they do not, or statistics are not shown here
	recent      *analytics.Recent    // with ClickHouse: its answers
	watched     []*watched           // of workers with ClickHouse, one for each replica, as reconcilers
	reconcilers []*reconciler
}

// Ranks is told which links were clicked, for their order.
type Ranks interface {
	Clicked(k link.Key)
	Counted(generation uint64)
}

// Open opens the parts of the pipeline that the roles need.
func Open(ctx context.Context, env *compose.Env, s *stores.Stores, changes *stores.Changes, ranks Ranks) (*Pipeline, *compose.Capability, error) {
	p, c := &Pipeline{env: env, stores: s, ranks: ranks}, &compose.Capability{Name: "clicks"}
	for _, part := range []struct {
		needed bool
		open   func(context.Context, *compose.Capability) error
	}{
		{env.Roles.Judges() && config.IsClickHouse(env.Config.Analytics), p.openCounted},
		{env.Roles.Serves(), p.openClicks},
		{env.Roles.Worker && env.Kafka != nil, p.openWorker},
		{env.Roles.Judges() && env.Kafka != nil && env.Shared(), p.openCreated},
	} {
		if !part.needed {
			continue
		}
		if err := part.open(ctx, c); err != nil {
			return nil, c, err
		}
	}
	if env.GeoIP != nil {
		c.Run("places", env.GeoIP.Run)
	}
	p.listen(changes)
	c.Metrics = p.count
	return p, c, nil
}

// listen has the workspaces of links that change looked up again.
func (p *Pipeline) listen(changes *stores.Changes) {
	if p.fold != nil {
		changes.Listen(p.fold.Changed)
	}
	if p.history != nil {
		changes.Listen(p.history.Changed)
	}
	for _, w := range p.workers {
		changes.Listen(w.Changed)
	}
}

// Captured returns how many clicks were captured.
func (p *Pipeline) Captured() uint64 { return p.capture.Stats().Clicks }

// Counts returns the store of counted clicks; nil = there is none here.
func (p *Pipeline) Counts() search.Counts {
	if p.rollups == nil {
		return nil
	}
	return p.rollups
}

// openClicks opens the roll-ups and the click log, and puts Capture and Fold on them.
func (p *Pipeline) openClicks(ctx context.Context, c *compose.Capability) error {
	began := time.Now()
	var shared func(time.Time) time.Time
	var err error
	if p.env.Config.Events == "" {
		if p.rollups, shared, err = openRollups(ctx, p.env); err != nil {
			return err
		}
		c.OnClose(p.rollups.Close)
		c.Run("roll-ups", background.LowPriority(p.env.Background, p.rollups.Run))
		if h, ok := p.rollups.(answering); ok {
			c.Need("analytics", false, h.Healthy)
		}
	}
	p.log, err = clicklog.Open(clicklog.Config{
		Dir: filepath.Join(p.env.Config.Data, "clicks"), MaxBytes: int64(p.env.Config.ClickLogMax),
		Retention: time.Duration(p.env.Config.RawRetention), Logger: p.env.Log, Yielder: p.env.Background,
	})
	if err != nil {
		return err
	}
	c.OnClose(p.log.Close)
	p.history = history.New(history.Config{Log: p.log, Logger: p.env.Log, Groups: p.workspaces, Yielder: p.env.Background})
	p.Ring = capture.NewRing(capture.RingConfig{})
	p.env.Background.Redirects(p.Ring.Recorded)
	var geo clicks.Geo
	if p.env.Places != nil {
		geo = p.env.Places
	}
	detail, err := capture.ParseDetail(p.env.Config.ClickDetail)
	if err != nil {
		return err
	}
	p.capture = capture.New(capture.Config{Ring: p.Ring, Log: p.log, Keys: p.stores.Keyring, Geo: geo, Detail: detail, Logger: p.env.Log})
	p.capture.Prepare(ctx)
	c.Loops = append(c.Loops, compose.Loop{Name: "capture", Stage: compose.Capture, Run: p.capture.Run})
	c.Run("click log", p.log.Run)
	c.Run("raw clicks", p.history.Run)
	p.openTally(ctx, c)
	if p.env.Config.Events != "" {
		return p.openShipper(ctx, c, began)
	}
	p.fold = fold.New(fold.Config{
		Log: p.log, Store: rankedStore{p.rollups, p.ranks, p.env.Traces.Tracer()}, Logger: p.env.Log, Every: p.env.Config.FoldInterval, Paused: p.env.Config.Fold == "pause",
		Yielder: p.env.Background.Sliced(), Groups: p.workspaces, Shared: shared,
	})
	c.Loops = append(c.Loops, compose.Loop{Name: "fold", Stage: compose.Fold, Run: p.fold.Run})
	return nil
}

// openTally tells what the end of the process before cost, and has that of this one counted.
// A server does without where it cannot.
func (p *Pipeline) openTally(ctx context.Context, c *compose.Capability) {
	tally, taken, err := capture.OpenTally(capture.TallyConfig{State: capture.TallyFile(p.env.Config.Data), Capture: p.capture})
	if err != nil {
		p.env.Log.WarnContext(ctx, "clicks lost to a kill cannot be counted", slog.Any("err", err))
	}
	c.OnClose(tally.Close)
	p.taken = taken
	switch {
	case !taken.Killed:
	case taken.Unknown:
		p.env.Log.WarnContext(ctx, "previous server was killed, unknown number of clicks lost", slog.String("reason", taken.Why))
	case taken.Clicks > 0:
		p.env.Log.WarnContext(ctx, "previous server was killed, some clicks are missing from the statistics", slog.Uint64("clicks", taken.Clicks))
	default:
		p.env.Log.InfoContext(ctx, "previous server was killed, no clicks lost")
	}
}

func (p *Pipeline) workspaces(ctx context.Context, keys []link.Key) ([]string, error) {
	return WorkspacesOf(ctx, p.stores.Links, keys)
}

// WorkspacesOf returns the workspaces of links, by which clicks are grouped; "" = the link does
// not exist.
func WorkspacesOf(ctx context.Context, store link.Store, keys []link.Key) ([]string, error) {
	links, err := link.GetMany(ctx, store, keys)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(links))
	for i := range links {
		if names[i] = string(links[i].Workspace); !links[i].ID.IsZero() {
			continue
		}
		// A link that is damaged counts for its workspace, if that can be told, or else for none.
		_, err := store.Get(ctx, keys[i])
		if damaged, ok := errors.AsType[*link.DamagedError](err); ok {
			names[i] = string(damaged.Workspace)
		} else if err != nil && !link.Absent(err) {
			return nil, err
		}
	}
	return names, nil
}

// rankedStore is the store that Fold writes to: the roll-ups, and word of the links in them.
type rankedStore struct {
	rollup.Store

	ranks  Ranks
	tracer *telemetry.Tracer
}

// Apply implements rollup.Store.
func (c rankedStore) Apply(ctx context.Context, b rollup.Batch) error {
	under, span := c.tracer.Start(ctx, "fold batch")
	links := b.Links
	b.Links = func(yield func([]rollup.LinkDelta) bool) {
		for chunk := range links { // another walk over them would add them up again
			for i := range chunk {
				c.ranks.Clicked(chunk[i].Key)
			}
			if !yield(chunk) {
				return
			}
		}
	}
	err := c.Store.Apply(under, b)
	span.End(err)
	if err == nil {
		c.ranks.Counted(b.Generation)
	}
	return err
}
