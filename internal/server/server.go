// Package server runs curt: it opens the capabilities of its roles, runs their loops, serves their
// handlers, and drains and closes all of it in order. What a capability is made of is in the
// packages below internal/compose; this one decides nothing else.
//
// The program and the end-to-end tests use the same two functions, [New] and [Server.Run]. The
// first file to read is roles.go: it has each role from top to bottom.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"curt/internal/background"
	"curt/internal/backup"
	"curt/internal/compose"
	"curt/internal/compose/condition"
	"curt/internal/config"
	"curt/internal/datafolder"
	"curt/internal/hosts"
	"curt/internal/listen"
	"curt/internal/settings"
	"curt/internal/telemetry"
)

// Options are what does not come from the operator.
type Options struct {
	Version string
	Log     *slog.Logger
	Reload  <-chan os.Signal // each asks to read the operator's lists again; nil = none does
	Force   bool             // start although the write-ahead log of the links lost what was confirmed
}

// Server is one running instance. Its fields are set in New.
type Server struct {
	env          *compose.Env
	sockets      *listen.Sockets
	traffic      *listen.Traffic
	probes       *condition.Probes
	capabilities []*compose.Capability // in the order opened
}

// New opens everything and binds the sockets. The config must be valid by its own rules; anything
// else that can be wrong about it is found before the data folder or an address is touched. An
// error that the operator can correct is a [*config.Error]; what was opened is closed again. New
// starts nothing: until Run, connections wait.
func New(ctx context.Context, cfg config.Config, o Options) (*Server, error) {
	s := &Server{probes: &condition.Probes{}, env: &compose.Env{
		Log: o.Log, Metrics: telemetry.New(o.Version), Background: background.New(o.Log), Reload: o.Reload, Force: o.Force,
		Version: o.Version, Began: time.Now().UTC().Truncate(time.Millisecond),
	}}
	if err := s.open(ctx, cfg); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *Server) open(ctx context.Context, cfg config.Config) (err error) {
	if err = listen.CheckDescriptors(); err != nil {
		return err
	}
	if s.env.Settings, err = settings.Read(ctx, cfg, s.env.Log, s.env.Background); err != nil {
		return err
	}
	if err = s.add(s.openProcess(ctx)); err != nil {
		return err
	}
	if err = s.add(s.bind(ctx)); err != nil {
		return err
	}
	if err = s.openRoles(ctx); err != nil {
		return err
	}
	var needs []compose.Dependency
	for _, c := range s.capabilities {
		if needs = append(needs, c.Ready...); c.Metrics != nil {
			c.Metrics(s.env.Metrics)
		}
	}
	s.probes.Watch(s.env.Config.Role, needs, s.traffic.Draining)
	return nil
}

// add adds a capability, also one that failed to open, which has to be closed.
func (s *Server) add(c *compose.Capability, err error) error {
	s.capabilities = append(s.capabilities, c)
	return err
}

// openProcess locks the data folder, and opens what the process has besides its roles.
func (s *Server) openProcess(ctx context.Context) (*compose.Capability, error) {
	c, env := &compose.Capability{Name: "process", Metrics: s.count}, s.env
	lock, err := datafolder.Lock(env.Config.Data)
	if err != nil {
		return c, err
	}
	c.OnClose(env.Background.Close)
	if env.Traces, err = telemetry.NewTraces(ctx, env.Version, os.Getenv); err != nil {
		return c, errors.Join(err, lock.Close())
	}
	c.OnClose(env.Traces.Close) // after all that make spans
	c.OnClose(lock.Close)
	c.Run("garbage", func(ctx context.Context) error { return env.Background.NewCollector().Run(ctx) })
	c.Run("memory", func(ctx context.Context) error { return background.FreeMemory(ctx, env.Background) })
	c.Run("processors", env.Background.Run)
	c.Run("questions", env.Background.RunQueue)
	return c, backup.Unfinished(env.Config.Data)
}

// count registers how the process does.
func (s *Server) count(m *telemetry.Metrics) {
	m.Gauge("curt_ready", "1 while the server is ready.", func() float64 {
		if s.probes.OK() {
			return 1
		}
		return 0
	})
	m.Gauge("curt_data_free_bytes", "Free space on the disk of CURT_DATA for this user.", func() float64 {
		return datafolder.FreeBytes(s.env.Config.Data)
	})
	if certs := s.env.Certs; certs != nil {
		until := certs.Certificates[0].Leaf.NotAfter
		m.Gauge("curt_tls_certificate_expires_seconds", "When CURT_TLS_CERT expires, in Unix seconds.",
			func() float64 { return float64(until.Unix()) })
	}
}

// bind takes the addresses before anything slow happens, so that a wrong one is known at once, and
// reads the hosts, of which the port that was bound may be a part.
func (s *Server) bind(ctx context.Context) (c *compose.Capability, err error) {
	c, cfg := &compose.Capability{Name: "sockets"}, &s.env.Config
	a := listen.Addresses{Public: cfg.Listen, API: cfg.APIListen, Admin: cfg.AdminListen}
	if !s.env.Roles.Serves() {
		a.Public = ""
	}
	if s.sockets, err = listen.Bind(ctx, a); err != nil {
		return c, err
	}
	c.OnClose(s.sockets.Close)
	var at net.Addr = settings.Unbound()
	if s.env.Roles.Serves() {
		at = s.sockets.Public()
	}
	named, err := settings.Hosts(*cfg, at)
	if err != nil {
		return c, err
	}
	s.env.Hosts, s.env.Loopback = hosts.NewCurrent(named), listen.IsLoopback(at)
	if cfg.BaseURL == "" && !s.env.Loopback {
		s.env.Log.WarnContext(ctx, "CURT_BASE_URL is not set: short links only work on this machine", slog.String("base_url", named.Base()))
	}
	if named.Strict() && s.env.Roles.Redirects {
		s.env.Log.InfoContext(ctx, "links are served on configured hosts only: add hosts to CURT_DOMAINS, or allow any host with CURT_STRICT_HOST=false",
			slog.String("base_url", named.Base()), slog.Any("domains", named.Domains()[1:]))
	}
	return c, nil
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.sockets.Public() }

// Run serves until ctx ends, then drains the traffic, counts the last clicks and closes
// everything. It returns nil when all of that worked. Call it once.
func (s *Server) Run(ctx context.Context) error {
	if err := background.ShortenSlices(); err != nil {
		s.env.Log.WarnContext(ctx, "cannot lower the priority of background work, it may delay redirects", slog.Any("err", err))
	}
	failed := make(chan error, 64) // one for each loop and socket: a send never blocks
	detached := context.WithoutCancel(ctx)
	var loops [compose.Stages][]compose.Loop
	for _, c := range s.capabilities {
		for _, l := range c.Loops {
			loops[l.Stage] = append(loops[l.Stage], l)
		}
	}
	var running stages
	for i := range loops {
		running = append(running, begin(detached, failed, loops[i]...))
	}
	s.traffic.Serve(failed)
	running = append(running, begin(detached, failed, compose.Loop{Name: "lane", Run: s.traffic.Run}))
	s.probes.Start()
	s.env.Log.InfoContext(ctx, "listening", append(s.addresses(),
		slog.String("base_url", s.env.Hosts.Load().Base()), slog.String("version", s.env.Version), slog.Int("pid", os.Getpid()))...)
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		s.env.Log.ErrorContext(ctx, "stopping", slog.Any("err", err))
	}
	s.traffic.Drain(detached)
	err = errors.Join(err, running.end(), s.close())
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	s.env.Log.InfoContext(detached, "stopped")
	return nil
}

// addresses are where the server listens, for its log.
func (s *Server) addresses() []any {
	attrs := []any{slog.String("role", strings.Join(s.env.Config.Role, ","))}
	for i, addr := range []net.Addr{s.sockets.Public(), s.sockets.API(), s.sockets.Admin()} {
		if addr != nil {
			attrs = append(attrs, slog.String([]string{"addr", "api_addr", "admin_addr"}[i], addr.String()))
		}
	}
	return attrs
}

// close closes what was opened, in reverse.
func (s *Server) close() error {
	var errs []error
	for _, c := range slices.Backward(s.capabilities) {
		if err := c.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", c.Name, err))
		}
	}
	return errors.Join(errs...)
}
