// Package server puts the parts together: it opens the stores, binds the listeners,
// starts the loops and ends all of it in order. It is the only place that knows
// every package, and it decides nothing else.
//
// The program and the end-to-end tests use the same two functions, [New] and
// [Server.Run].
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"

	"curt/internal/analytics"
	"curt/internal/backend/sqlite"
	"curt/internal/cache"
	"curt/internal/clientaddr"
	"curt/internal/codegen"
	"curt/internal/config"
	"curt/internal/httpapi"
	"curt/internal/redirect"
	"curt/internal/telemetry"
)

// Options are what does not come from the operator.
type Options struct {
	Version string
	Log     *slog.Logger
}

// Server is one running instance. Its fields are set in New.
type Server struct {
	config  config.Config
	version string
	log     *slog.Logger
	metrics *telemetry.Metrics
	origin  origin

	listener net.Listener
	admin    net.Listener // nil without an admin listener
	servers  []*http.Server

	links   *sqlite.Links
	codeKey [32]byte
	codes   *codegen.Range
	cache   *cache.Tiered
	clicks  pipeline

	health      health
	connections connections
	closers     []func() error // in the order opened
}

// New opens everything and binds the listeners. The config must be valid. An error
// that the operator can put right is a [*config.Error]; whatever was opened is
// closed again. New starts nothing: until Run, connections wait.
func New(ctx context.Context, cfg config.Config, o Options) (*Server, error) {
	s := &Server{config: cfg, version: o.Version, log: o.Log, metrics: telemetry.New(o.Version)}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *Server) open(ctx context.Context) error {
	lock, err := lockFolder(s.config.Data)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, lock.Close)
	if err := s.bind(ctx); err != nil {
		return err
	}
	if err := s.openLinks(ctx); err != nil {
		return err
	}
	s.health.store = s.links.Healthy
	if err := s.newCache(); err != nil {
		return err
	}
	if err := s.openClicks(ctx); err != nil {
		return err
	}
	s.register()
	return s.compose(ctx)
}

// bind takes the listeners' addresses before anything slow happens, so that a
// wrong one is known at once.
func (s *Server) bind(ctx context.Context) error {
	var err error
	if s.listener, err = listen(ctx, "CURT_LISTEN", s.config.Listen); err != nil {
		return err
	}
	s.closers = append(s.closers, closeOnce(s.listener))
	if s.config.AdminListen != "" {
		if s.admin, err = listen(ctx, "CURT_ADMIN_LISTEN", s.config.AdminListen); err != nil {
			return err
		}
		s.closers = append(s.closers, closeOnce(s.admin))
	}
	if s.origin, err = originOf(s.config, s.listener.Addr()); err != nil {
		return err
	}
	if s.origin.guessed && !s.origin.loopback {
		s.log.WarnContext(ctx, "CURT_BASE_URL is not set: short links work on this machine only", slog.String("base_url", s.origin.base))
	}
	return nil
}

// closeOnce closes a listener that http.Server may have closed before.
func closeOnce(l net.Listener) func() error {
	return func() error {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}

// compose builds the handlers on top of the stores.
func (s *Server) compose(ctx context.Context) error {
	certs, err := certificate(s.config)
	if err != nil {
		return err
	}
	var trusted []netip.Prefix
	for _, p := range s.config.TrustedProxies {
		prefix, err := netip.ParsePrefix(p)
		if err != nil {
			return &config.Error{Setting: "CURT_TRUSTED_PROXIES", Value: p, Want: err.Error()}
		}
		trusted = append(trusted, prefix)
	}
	clients := clientaddr.New(trusted...)
	visitors, err := s.visitors(clients)
	if err != nil {
		return err
	}
	programs, err := s.programs(ctx, clients)
	if err != nil {
		return err
	}
	public := httpServer(s.routes(programs, visitors), s.log, certs)
	public.ConnState = s.connections.track
	s.servers = append(s.servers, public)
	if s.admin != nil {
		s.servers = append(s.servers, httpServer(s.adminRoutes(), s.log, nil))
	}
	return nil
}

// visitors is the handler of every path that is no route.
func (s *Server) visitors(clients clientaddr.Rule) (http.Handler, error) {
	resolver, err := redirect.NewResolver(redirect.ResolverConfig{
		Source: s.cache, Spender: s.links,
	})
	if err != nil {
		return nil, err
	}
	return redirect.NewHandler(redirect.HandlerConfig{
		Resolver: resolver, Recorder: s.clicks.ring, Hosts: s.origin.hosts(),
		StrictHost: s.config.StrictHost, Clients: clients, Log: s.log,
	})
}

// programs is the handler of the API.
func (s *Server) programs(ctx context.Context, clients clientaddr.Rule) (http.Handler, error) {
	creator, err := s.newCreator()
	if err != nil {
		return nil, err
	}
	keys, err := s.newKeys(ctx)
	if err != nil {
		return nil, err
	}
	cursorKey, err := s.derive("curt cursors")
	if err != nil {
		return nil, err
	}
	return httpapi.New(httpapi.Config{
		Links: creator, Stats: analytics.NewEmbedded(s.clicks.rollups, s.clicks.fold), Auth: keys, BaseURL: s.origin.base,
		ClientAddr: func(r *http.Request) netip.Addr {
			return clients.Of(clientaddr.Peer(r.RemoteAddr), r.Header.Values("X-Forwarded-For"))
		},
		CursorKey: cursorKey, Version: s.version, Log: s.log,
	})
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until ctx ends, then lets the traffic end, counts the last clicks and
// closes everything. It returns nil when all of that worked. Call it once.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, 16) // one for each loop and listener: a send never waits
	background := context.WithoutCancel(ctx)
	fold := begin(background, failed, loop{"fold", s.clicks.fold.Run})
	capture := begin(background, failed, loop{"capture", s.clicks.capture.Run})
	support := begin(background, failed, s.support()...)
	go func() { failed <- serve(s.servers[0], s.listener) }()
	if s.admin != nil {
		go func() { failed <- serve(s.servers[1], s.admin) }()
	}
	s.health.started.Store(true)
	s.log.InfoContext(ctx, "listening", slog.String("addr", s.Addr().String()),
		slog.String("base_url", s.origin.base), slog.String("version", s.version), slog.Int("pid", os.Getpid()))
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		s.log.ErrorContext(ctx, "stopping", slog.Any("err", err))
	}
	s.drain(background)
	err = errors.Join(err, capture.end(), fold.end(), support.end(), s.close())
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	s.log.InfoContext(background, "stopped")
	return nil
}
