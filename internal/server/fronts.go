package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"curt/internal/clientaddr"
	"curt/internal/lane"
	"curt/internal/redirect"
	"curt/internal/web"
)

// front is an http.Server with what it accepts from.
type front struct {
	server   *http.Server
	listener net.Listener
}

// listeners are the addresses, bound and not yet served.
type listeners struct {
	api   *gate // nil = beside the links
	admin *gate // nil = none
}

// bind takes the listeners' addresses before anything slow happens, so that a wrong
// one is known at once.
func (s *Server) bind(ctx context.Context) error {
	given, err := inherit()
	if err != nil {
		return err
	}
	take := func(setting, address string) (*gate, error) {
		l := given.next()
		if l == nil {
			var err error
			if l, err = listen(ctx, setting, address); err != nil {
				return nil, err
			}
		}
		g := newGate(l)
		s.closers = append(s.closers, g.Close)
		return g, nil
	}
	s.inherited = len(given) > 0
	var at net.Addr = standIn() // of a server that serves nobody
	if s.roles.serves() {
		if s.listener, err = take("CURT_LISTEN", s.config.Listen); err != nil {
			return err
		}
		at = s.listener.Addr()
	}
	if s.config.APIListen != "" {
		if s.bound.api, err = take("CURT_API_LISTEN", s.config.APIListen); err != nil {
			return err
		}
	}
	if s.config.AdminListen != "" {
		if s.bound.admin, err = take("CURT_ADMIN_LISTEN", s.config.AdminListen); err != nil {
			return err
		}
	}
	if s.origin, err = originOf(s.config, at); err != nil {
		return err
	}
	if s.own, err = s.origin.ownHosts(at); err != nil {
		return err
	}
	if s.origin.guessed && !s.origin.loopback {
		s.log.WarnContext(ctx, "CURT_BASE_URL is not set: short links work on this machine only", slog.String("base_url", s.origin.base))
	}
	if strict, own := s.strictHost(); strict && own != nil && s.roles.redirects {
		s.log.InfoContext(ctx, "links are followed at configured hosts only: CURT_DOMAINS names more, CURT_STRICT_HOST=false follows them at every host",
			slog.String("base_url", s.origin.base), slog.Any("domains", s.origin.names()))
	}
	return nil
}

// addresses are where the server listens, for its log.
func (s *Server) addresses() []any {
	attrs := []any{slog.String("role", roleText(s.config))}
	if s.listener != nil {
		attrs = append(attrs, slog.String("addr", s.Addr().String()))
	}
	if s.bound.api != nil {
		attrs = append(attrs, slog.String("api_addr", s.bound.api.Addr().String()))
	}
	if s.bound.admin != nil {
		attrs = append(attrs, slog.String("admin_addr", s.bound.admin.Addr().String()))
	}
	return attrs
}

// stand puts the handlers behind the listeners. The public one is the lane's, which
// hands over to net/http, or net/http's own with CURT_LANE=off and where no links are
// followed.
func (s *Server) stand(ctx context.Context, certs *tls.Config, f faces) error {
	if f.programs != nil {
		f.programs = s.processors.during(s.counted(f.programs))
	}
	beside := f.programs
	if s.bound.api != nil {
		beside = nil
	}
	shown, err := s.shown(f, beside != nil, s.roles.redirects)
	if err != nil {
		return err
	}
	s.warnOfClearKeys(ctx)
	var links http.Handler = f.visitors
	if !s.roles.redirects {
		links = http.NotFoundHandler()
	}
	public := s.routes(beside, shown, links)
	if s.config.Lane == "on" && s.roles.redirects {
		if err := s.pave(ctx, certs, f.clients, f.visitors, public); err != nil {
			return err
		}
	} else {
		s.expose(ctx, certs, f.clients, public)
	}
	if s.bound.api != nil {
		if shown, err = s.shown(f, true, false); err != nil {
			return err
		}
		_, room := s.rooms()
		api, l := bounded(httpServer(s.apiRoutes(f.programs, shown), s.log, certs), s.bound.api, room, f.clients)
		s.fronts = append(s.fronts, api)
		s.countAPI(l.Stats)
	}
	s.standAlone()
	return nil
}

// shown are the pages of a listener, which may be one of the API's, one of links, or both.
func (s *Server) shown(f faces, api, public bool) (pages, error) {
	if f.programs == nil {
		return web.NewLinkPages(web.LinksConfig{Pages: f.pages, Visitors: f.visitors, Log: s.log, ShortURL: s.origin.shortURL})
	}
	f.people.API, f.people.Public = api, public
	return web.New(f.people)
}

// standAlone adds what the operator is shown.
func (s *Server) standAlone() {
	if s.bound.admin != nil {
		admin, _ := bounded(httpServer(s.adminRoutes(), s.log, nil), s.bound.admin, adminConns, clientaddr.Rule{})
		s.fronts = append(s.fronts, admin)
	}
}

// pave builds the lane, and net/http's server behind it.
func (s *Server) pave(ctx context.Context, certs *tls.Config, clients clientaddr.Rule, visitors *redirect.Handler, public http.Handler) error {
	if certs != nil {
		certs = certs.Clone()
		certs.NextProtos = []string{"h2", "http/1.1"}
	}
	var err error
	s.lane, err = lane.New(lane.Config{
		Cache: s.cache, Visitors: visitors, Recorder: s.clicks.ring, Clients: clients,
		Pages: lonePaths(), TLS: certs, ProxyProtocol: s.config.ProxyProtocol, MaxConns: s.room(ctx), Log: s.log,
	})
	if err != nil {
		return err
	}
	behind := httpServer(s.lane.Handler(public), s.log, nil) // the lane has spoken TLS
	behind.ConnContext = s.lane.ConnContext
	behind.ConnState = s.watch(s.lane.ConnState)
	s.fronts = []front{{behind, s.lane.Listener()}}
	s.countLane(s.lane.Stats)
	return nil
}

// expose puts net/http's server behind the main listener, under the same cap.
func (s *Server) expose(ctx context.Context, certs *tls.Config, clients clientaddr.Rule, public http.Handler) {
	var l net.Listener = s.listener
	if s.config.ProxyProtocol {
		l = lane.ProxyListener(l, clients)
	}
	alone := httpServer(public, s.log, certs)
	alone.ConnState = s.connections.track
	visible, bound := bounded(alone, l, s.room(ctx), clients)
	s.fronts = []front{visible}
	s.countLane(asLane(bound))
}

// watch is the ConnState of the public http.Server: both the drain and who makes room
// know a connection's state.
func (s *Server) watch(room func(net.Conn, http.ConnState)) func(net.Conn, http.ConnState) {
	return func(nc net.Conn, state http.ConnState) {
		s.connections.track(nc, state)
		room(nc, state)
	}
}

// accept begins to serve every listener. The stage keeps the lane's time, and ends
// after the traffic.
func (s *Server) accept(ctx context.Context, failed chan<- error) *stage {
	for _, f := range s.fronts {
		go func() { failed <- serve(f.server, f.listener) }()
	}
	if s.lane == nil {
		return begin(ctx, failed)
	}
	s.serving = make(chan struct{})
	go func() {
		defer close(s.serving)
		failed <- fmt.Errorf("serve %s: %w", s.listener.Addr(), s.lane.Serve(s.listener))
	}()
	return begin(ctx, failed, loop{"lane", s.lane.Run})
}
