package server

import (
	"context"
	"log/slog"

	"curt/internal/clientaddr"
	"curt/internal/compose/condition"
	"curt/internal/compose/finding"
	"curt/internal/compose/frontend"
	"curt/internal/compose/judging"
	"curt/internal/compose/pipeline"
	"curt/internal/compose/stores"
	"curt/internal/compose/writing"
	"curt/internal/httpapi"
	"curt/internal/lane"
	"curt/internal/link"
	"curt/internal/listen"
	"curt/internal/settings"
)

// openRoles opens what the roles need, in the order in which capabilities stand on each other. A
// capability that no role of this server needs is not opened, and its settings are not read.
//
//	             redirect  api  worker  keys  writer
//	stores          x       x     x      x      x
//	cache, clicks   x       x
//	codes, search           x
//	API, pages              x
//	decisions               x     x             x
//	reviews                 x     x             x
//	recheck, sweep                x
//	Kafka           x       x     x                    where CURT_EVENTS is set: to it, to it, from it
//	keys                                 x             where CURT_CODES=pool
//	queue                   x                   x      where CURT_WRITES=queued: to it, from it
func (s *Server) openRoles(ctx context.Context) error {
	switch roles := s.env.Roles; {
	case roles.API:
		return s.openAPI(ctx)
	case roles.Redirects:
		return s.openRedirects(ctx)
	case roles.Worker || roles.Writer:
		return s.openWorker(ctx)
	default:
		return s.openKeys(ctx)
	}
}

// openStores opens the stores, and what fills one of them whatever the other roles are.
func (s *Server) openStores(ctx context.Context, stored func(link.ID)) (*stores.Stores, error) {
	kept, c, err := stores.Open(ctx, s.env, stored)
	if err = s.add(c, err); err != nil {
		return nil, err
	}
	return kept, s.add(stores.OpenKeys(ctx, s.env, kept))
}

// openAPI opens a server of the API: links are created, searched, judged and shown, and, with the
// other roles, followed and rechecked.
func (s *Server) openAPI(ctx context.Context) error {
	changes, finder := &stores.Changes{}, &finding.Finder{}
	kept, err := s.openStores(ctx, finder.Stored)
	if err != nil {
		return err
	}
	if err = s.add(stores.OpenPending(ctx, s.env, kept)); err != nil {
		return err
	}
	cache, c, err := stores.OpenCache(s.env, kept, changes)
	if err = s.add(c, err); err != nil {
		return err
	}
	codes, c, err := stores.OpenCodes(ctx, s.env, kept, cache)
	if err = s.add(c, err); err != nil {
		return err
	}
	clicks, c, err := pipeline.Open(ctx, s.env, kept, changes, finder)
	if err = s.add(c, err); err != nil {
		return err
	}
	if err = s.add(finder.Open(ctx, s.env, kept, clicks)); err != nil {
		return err
	}
	judges, err := s.openJudging(ctx, judging.Parts{Stores: kept, Changes: changes, Cache: cache, Codes: codes, Finder: finder})
	if err != nil {
		return err
	}
	report := condition.Sources{Env: s.env, Probes: s.probes, Stores: kept, Cache: cache, Pipeline: clicks, Finder: finder, Judging: judges}
	return s.openFrontend(ctx, frontend.Parts{Stores: kept, Cache: cache, Pipeline: clicks, Judging: judges, Probes: s.probes, Report: report.Report})
}

// openRedirects opens a server that follows links, and, with the role worker, judges them.
func (s *Server) openRedirects(ctx context.Context) error {
	changes, finder := &stores.Changes{}, &finding.Finder{}
	kept, err := s.openStores(ctx, finder.Stored)
	if err != nil {
		return err
	}
	if err = s.add(stores.OpenPending(ctx, s.env, kept)); err != nil {
		return err
	}
	cache, c, err := stores.OpenCache(s.env, kept, changes)
	if err = s.add(c, err); err != nil {
		return err
	}
	clicks, c, err := pipeline.Open(ctx, s.env, kept, changes, finder)
	if err = s.add(c, err); err != nil {
		return err
	}
	if !s.env.Roles.Judges() {
		_ = s.add(judging.FollowBans(s.env, kept), nil)
	} else {
		if _, err = s.openJudging(ctx, judging.Parts{Stores: kept, Changes: changes, Cache: cache}); err != nil {
			return err
		}
	}
	return s.openFrontend(ctx, frontend.Parts{Stores: kept, Cache: cache, Pipeline: clicks, Probes: s.probes})
}

// openWorker opens a server that judges links, or writes them, without a public socket.
func (s *Server) openWorker(ctx context.Context) error {
	changes, finder := &stores.Changes{}, &finding.Finder{}
	kept, err := s.openStores(ctx, finder.Stored)
	if err != nil {
		return err
	}
	_ = s.add(stores.FollowChanges(s.env, kept, changes), nil)
	if s.env.Roles.Worker {
		_, c, err := pipeline.Open(ctx, s.env, kept, changes, finder)
		if err = s.add(c, err); err != nil {
			return err
		}
	}
	if _, err = s.openJudging(ctx, judging.Parts{Stores: kept, Changes: changes}); err != nil {
		return err
	}
	s.traffic = s.newTraffic(clientaddr.Rule{})
	s.serveAdmin()
	return nil
}

// openKeys opens a server that generates keys and nothing else, without a public socket.
func (s *Server) openKeys(ctx context.Context) error {
	if _, err := s.openStores(ctx, nil); err != nil {
		return err
	}
	s.traffic = s.newTraffic(clientaddr.Rule{})
	s.serveAdmin()
	return nil
}

// openJudging opens what decides about links, and, with the role writer, what writes them.
func (s *Server) openJudging(ctx context.Context, p judging.Parts) (*judging.Judging, error) {
	judges, c, err := judging.Open(ctx, s.env, p)
	if err = s.add(c, err); err != nil {
		return nil, err
	}
	return judges, s.add(writing.Open(s.env, p.Stores, judges))
}

// openFrontend opens what the sockets show, and puts it behind them. The public one is the lane's,
// which hands over to net/http, or net/http's own with CURT_LANE=off and where no links are
// followed.
func (s *Server) openFrontend(ctx context.Context, p frontend.Parts) error {
	shown, c, err := frontend.Open(ctx, s.env, p)
	if err = s.add(c, err); err != nil {
		return err
	}
	if setting, address := settings.KeysInClear(s.env.Config); setting != "" {
		s.env.Log.WarnContext(ctx, "api keys are sent unencrypted", slog.String("setting", setting), slog.String("addr", address), slog.String("advice", settings.ClearAdvice))
	}
	s.traffic = s.newTraffic(shown.Clients)
	s.traffic.BeforeDrain(shown.EndStreams)
	apart := s.sockets.API() != nil
	public, err := shown.Public(!apart)
	if err != nil {
		return err
	}
	if s.env.Config.Lane == "on" && s.env.Roles.Redirects {
		err = s.traffic.ServeLane(ctx, lane.Config{Cache: p.Cache.Tiered, Visitors: shown.Visitors, Limits: shown.Limits, Recorder: p.Pipeline.Ring, Pages: frontend.LonePaths(), CountryHeader: s.env.Config.CountryHeader}, public)
	} else {
		s.traffic.ServeNetHTTP(ctx, public)
	}
	if err != nil {
		return err
	}
	if apart {
		api, err := shown.API()
		if err != nil {
			return err
		}
		s.traffic.ServeAPI(api)
	}
	s.serveAdmin()
	return nil
}

// newTraffic returns the Traffic of the sockets, without a handler.
func (s *Server) newTraffic(clients clientaddr.Rule) *listen.Traffic {
	cfg := &s.env.Config
	return listen.New(listen.Config{
		Sockets: s.sockets, TLS: s.env.Certs, Clients: clients, ProxyProtocol: cfg.ProxyProtocol, MaxConnections: cfg.MaxConnections,
		DrainDelay: cfg.DrainDelay, DrainLimit: cfg.DrainLimit, Streams: httpapi.Streams, Metrics: s.env.Metrics, Log: s.env.Log,
	})
}

// serveAdmin puts metrics, profiles and probes behind the operator's socket.
func (s *Server) serveAdmin() {
	if at := s.sockets.Admin(); at != nil {
		s.traffic.ServeAdmin(frontend.Admin(s.env, s.probes, at))
	}
}
