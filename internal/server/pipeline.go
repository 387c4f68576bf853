package server

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"curt/internal/backend/mmdb"
	"curt/internal/backend/sqlite"
	"curt/internal/clicks"
	"curt/internal/idempotency"
	"curt/internal/link"
)

// pipeline is the way of a click from the answer to the statistics.
type pipeline struct {
	ring    *clicks.Ring
	log     *clicks.Log
	capture *clicks.Capture
	fold    *clicks.Fold
	rollups *sqlite.Rollups
	history *clicks.History
	places  *mmdb.Database // nil = CURT_GEOIP is unset
}

// openClicks opens clicks.db and the click log, and puts Capture and Fold on them.
func (s *Server) openClicks(ctx context.Context) error {
	p := &s.clicks
	var err error
	p.rollups, err = sqlite.OpenRollups(ctx, sqlite.RollupsConfig{Path: filepath.Join(s.config.Data, "clicks.db")})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, p.rollups.Close)
	p.log, err = clicks.OpenLog(clicks.LogConfig{
		Dir: filepath.Join(s.config.Data, "clicks"), MaxBytes: int64(s.config.ClickLogMax),
		Retention: time.Duration(s.config.RawRetention), Logger: s.log,
	})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, p.log.Close)
	p.history = clicks.NewHistory(clicks.HistoryConfig{Log: p.log, Logger: s.log})
	p.ring = clicks.NewRing(clicks.RingConfig{})
	var geo clicks.Geo
	if p.places = s.ready.places; p.places != nil {
		geo = p.places
	}
	p.capture = clicks.NewCapture(clicks.CaptureConfig{Ring: p.ring, Log: p.log, Keys: s.links, Geo: geo, Logger: s.log})
	p.fold = clicks.NewFold(clicks.FoldConfig{
		Log: p.log, Store: counted{p.rollups, &s.finder, s.traces.Tracer()}, Logger: s.log, Every: s.config.FoldInterval, Paused: s.config.Fold == "pause",
		Aside: s.standAside, Work: s.processors.work, Groups: s.workspaces,
	})
	return nil
}

// workspaces returns whose links are, by which clicks are counted in groups; "" = there is
// no such link any more.
func (s *Server) workspaces(ctx context.Context, keys []link.Key) ([]string, error) {
	names := make([]string, len(keys))
	for i, k := range keys {
		l, err := s.links.Get(ctx, k)
		if err != nil && !errors.Is(err, link.ErrNotFound) {
			return nil, err
		}
		names[i] = string(l.Workspace)
	}
	return names, nil
}

// support are the loops that serve all others, and therefore end last.
func (s *Server) support() []loop {
	loops := []loop{
		{"processors", s.processors.Run},
		{"links", s.links.Run},
		{"idempotency keys", idempotency.NewSweeper(s.accounts.once, time.Now, s.log).Run},
		{"cache", s.cache.Run},
		{"keys", s.keys.Run},
		{"roll-ups", s.aside(s.clicks.rollups.Run)},
		{"click log", s.clicks.log.Run},
		{"raw clicks", s.clicks.history.Run},
		{"live counts", s.live.Run},
		{"decisions", s.aside(s.decides.Run)},
		{"reviews", s.desk.Run},
		{"search", s.aside(s.finder.indexer.Run)},
		{"ranking", s.aside(s.finder.ranker.Run)},
	}
	if s.ranges != nil {
		loops = append(loops, loop{"codes", s.ranges.Run})
	}
	if s.ready.blocked != nil {
		loops = append(loops, loop{"blocklists", s.aside(s.ready.blocked.Run)})
	}
	if s.ready.words != nil {
		loops = append(loops, loop{"words", s.aside(s.ready.words.Run)})
	}
	if s.ready.sources != nil {
		loops = append(loops, loop{"sources", s.aside(s.ready.sources.Run)})
	}
	if s.ready.blocked != nil || s.ready.words != nil || s.ready.sources != nil {
		loops = append(loops, loop{"reload", s.aside(s.reload)})
	}
	if s.again != nil {
		loops = append(loops, loop{"recheck", s.aside(s.again.Run)})
	}
	if p := s.clicks.places; p != nil {
		loops = append(loops, loop{"places", p.Run})
	}
	return loops
}
