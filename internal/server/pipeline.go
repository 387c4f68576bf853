package server

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/mmdb"
	"curt/internal/clicks"
	"curt/internal/idempotency"
	"curt/internal/link"
)

// pipeline is the way of a click from the answer to the statistics.
type pipeline struct {
	ring    *clicks.Ring
	log     *clicks.Log
	capture *clicks.Capture
	fold    *clicks.Fold // nil, as rollups, where CURT_EVENTS is set
	rollups rollups
	history *clicks.History
	counted *clickhouse.Store // of clicks that went through Kafka; nil = they do not, or nobody asks here
	places  *mmdb.Database    // nil = CURT_GEOIP is unset
	taken   clicks.Taken      // what the end of the process before cost
}

// openClicks opens the roll-ups and the click log, and puts Capture and Fold on them.
func (s *Server) openClicks(ctx context.Context) error {
	p, began := &s.clicks, time.Now()
	var shared func(time.Time) time.Time
	var err error
	if s.config.Events == "" {
		if p.rollups, shared, err = s.openRollups(ctx); err != nil {
			return err
		}
		s.closers = append(s.closers, p.rollups.Close)
	}
	p.log, err = clicks.OpenLog(clicks.LogConfig{
		Dir: filepath.Join(s.config.Data, "clicks"), MaxBytes: int64(s.config.ClickLogMax),
		Retention: time.Duration(s.config.RawRetention), Logger: s.log, Work: s.processors.work,
	})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, p.log.Close)
	p.history = clicks.NewHistory(clicks.HistoryConfig{Log: p.log, Logger: s.log, Groups: s.workspaces, Rest: s.rest()})
	p.ring = clicks.NewRing(clicks.RingConfig{})
	if s.pauses != nil {
		s.pauses.recorded = p.ring.Recorded
	}
	var geo clicks.Geo
	if p.places = s.ready.places; p.places != nil {
		geo = p.places
	}
	detail, err := clicks.ParseDetail(s.config.ClickDetail)
	if err != nil {
		return err
	}
	p.capture = clicks.NewCapture(clicks.CaptureConfig{Ring: p.ring, Log: p.log, Keys: s.keyring, Geo: geo, Detail: detail, Logger: s.log})
	p.capture.Prepare(ctx)
	s.openTally(ctx)
	if s.config.Events != "" {
		return s.openShipper(ctx, began)
	}
	aside, work := s.lent()
	p.fold = clicks.NewFold(clicks.FoldConfig{
		Log: p.log, Store: counted{p.rollups, &s.finder, s.traces.Tracer()}, Logger: s.log, Every: s.config.FoldInterval, Paused: s.config.Fold == "pause",
		Aside: aside, Work: work, Rest: s.rest(), Groups: s.workspaces, Shared: shared,
	})
	return nil
}

// openTally tells what the end of the process before cost, and has that of this one counted.
// A server does without where it cannot.
func (s *Server) openTally(ctx context.Context) {
	p := &s.clicks
	tally, taken, err := clicks.OpenTally(clicks.TallyConfig{State: clicks.TallyFile(s.config.Data), Capture: p.capture})
	if err != nil {
		s.log.WarnContext(ctx, "clicks that a kill takes are not counted", slog.Any("err", err))
	}
	s.closers = append(s.closers, tally.Close)
	p.taken = taken
	switch {
	case !taken.Killed:
	case taken.Unknown:
		s.log.WarnContext(ctx, "the server before was killed; nobody knows how many clicks that cost", slog.String("reason", taken.Why))
	case taken.Clicks > 0:
		s.log.WarnContext(ctx, "the server before was killed; clicks were answered that are in no statistics", slog.Uint64("clicks", taken.Clicks))
	default:
		s.log.InfoContext(ctx, "the server before was killed; no click was lost")
	}
}

// workspaces returns whose links are, by which clicks are counted in groups; "" = there is
// no such link any more.
func (s *Server) workspaces(ctx context.Context, keys []link.Key) ([]string, error) {
	return workspacesOf(ctx, s.links, keys)
}

func workspacesOf(ctx context.Context, store link.Store, keys []link.Key) ([]string, error) {
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

// followEvery is how often a server asks what others have changed.
const followEvery = time.Second

// support are the loops that serve all others, and therefore end last.
func (s *Server) support() []loop {
	loops := []loop{
		{"garbage", newCollector(s.pauses, s.processors).Run},
		{"memory", settler{s.processors.work}.Run},
		{"processors", s.processors.Run},
		{"questions", func(ctx context.Context) error { return s.questions.run(ctx, s.standAside) }},
		{"links", s.links.Run},
	}
	loops = append(loops, s.loops...)
	if s.cache != nil {
		loops = append(loops, loop{"cache", s.cache.Run})
		if s.shared() {
			loops = append(loops, loop{"changes", func(ctx context.Context) error { return s.cache.Follow(ctx, s.links, followEvery) }})
		}
	}
	if s.cache == nil && s.shared() {
		loops = append(loops, loop{"changes", s.hearChanges})
	}
	if s.roles.serves() {
		loops = append(loops, loop{"click log", s.clicks.log.Run}, loop{"raw clicks", s.clicks.history.Run})
		if s.clicks.rollups != nil {
			loops = append(loops, loop{"roll-ups", s.aside(s.clicks.rollups.Run)})
		}
	}
	if s.clicks.counted != nil {
		loops = append(loops, loop{"clickhouse", s.clicks.counted.Run})
		if s.roles.works {
			loops = append(loops, loop{"settle days", s.settle}, loop{"senders that ended", s.dismiss})
		}
	}
	if s.roles.programs {
		loops = append(loops, loop{"keys", s.keys.Run}, loop{"live counts", s.live.Run}, loop{"search", s.aside(s.finder.indexer.Run)})
	}
	if s.finder.ranker != nil {
		loops = append(loops, loop{"ranking", s.behind(s.finder.ranker.Run)})
		if house := s.finder.house; house != nil {
			loops = append(loops, loop{"links clicked", func(ctx context.Context) error { return house.run(ctx, s.finder.ranker) }})
		}
	}
	if s.roles.judges() {
		loops = append(loops, loop{"decisions", s.aside(s.decides.Run)}, loop{"reviews", s.desk.Run})
	}
	if s.events.worker != nil {
		loops = append(loops, loop{"clicks from Kafka", s.events.worker.Run})
		if s.clicks.counted != nil {
			loops = append(loops, loop{"watch statistics", s.watchCounts})
		}
	}
	if s.roles.works {
		loops = append(loops, loop{"idempotency keys", idempotency.NewSweeper(s.accounts.once, time.Now, s.log).Run})
	}
	if s.redis != nil {
		loops = append(loops, loop{"redis", s.redis.Run})
	}
	if s.teller != nil {
		loops = append(loops, loop{"hints", s.teller.Run})
	}
	if s.ranges != nil {
		loops = append(loops, loop{"codes", s.ranges.Run})
	}
	if s.again != nil {
		loops = append(loops, loop{"recheck", s.once("recheck", s.aside(s.again.Run))})
	}
	return append(loops, s.readers()...)
}

// readers are the loops that look after files of the operator.
func (s *Server) readers() (loops []loop) {
	if s.ready.blocked != nil {
		loops = append(loops, loop{"blocklists", s.aside(s.ready.blocked.Run)})
	}
	if s.ready.words != nil {
		loops = append(loops, loop{"words", s.aside(s.ready.words.Run)})
	}
	if s.ready.sources != nil {
		loops = append(loops, loop{"sources", s.aside(s.ready.sources.Run)})
	}
	if len(loops) > 0 {
		loops = append(loops, loop{"reload", s.aside(s.reload)})
	}
	if p := s.ready.places; p != nil {
		loops = append(loops, loop{"places", p.Run})
	}
	return loops
}
