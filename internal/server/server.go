// Package server puts the parts together: it opens the stores, binds the listeners,
// starts the loops and ends all of it in order. It is the only place that knows
// every package, and it decides nothing else.
//
// The program and the end-to-end tests use the same two functions, [New] and
// [Server.Run].
package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"curt/internal/analytics"
	"curt/internal/auth"
	"curt/internal/backend/redis"
	"curt/internal/backup"
	"curt/internal/bodies"
	"curt/internal/cache"
	"curt/internal/clicks"
	"curt/internal/clientaddr"
	"curt/internal/codegen"
	"curt/internal/config"
	"curt/internal/httpapi"
	"curt/internal/lane"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/qr"
	"curt/internal/redirect"
	"curt/internal/review"
	"curt/internal/shorten"
	"curt/internal/telemetry"
	"curt/internal/web"
	"curt/internal/weburl"
)

// Options are what does not come from the operator.
type Options struct {
	Version string
	Log     *slog.Logger
	Reload  <-chan os.Signal // each asks to read the files anew that may change; nil = nobody asks
	Force   bool             // start although the write-ahead log of the links lost what was confirmed
}

// Server is one running instance. Its fields are set in New.
type Server struct {
	config  config.Config
	roles   roles
	ready   prepared
	version string
	asked   <-chan os.Signal // to read files anew
	force   bool             // what the write-ahead log lost is given up
	log     *slog.Logger
	metrics *telemetry.Metrics
	traces  *telemetry.Traces // nil = off
	origin  origin
	own     *weburl.Hosts // no link may lead there

	listener  *gate // nil = this server serves nobody but its operator
	bound     listeners
	inherited bool          // listener is a supervisor's too: it stays open without us
	lane      *lane.Lane    // nil = CURT_LANE=off
	fronts    []front       // of net/http; the first is the public one's
	serving   chan struct{} // closed when the lane accepts no more

	stores
	codeKey [32]byte
	codes   codegen.Generator
	ranges  *codegen.Range // codes, when it is the strategy range; else nil
	cache   *cache.Tiered
	redis   *redis.Client   // nil = CURT_CACHE is unset
	teller  *teller         // nil = CURT_CACHE is unset, or the cache tells
	alone   []func() uint64 // how often limits were decided here because of it
	issued  *cache.Issued
	clicks  pipeline
	events  events
	watched watched // of the statistics in ClickHouse
	keys    *auth.Keys
	decides *moderation.Moderator
	desk    *review.Desk
	again   *shorten.Rechecker // nil = CURT_RECHECK is 0
	finder  finder
	live    *analytics.Live                 // whoever watches clicks arrive
	counted func(http.Handler) http.Handler // has answers in metrics and traces
	bodies  *bodies.Budget                  // likewise
	unknown *redirect.Budget                // nil = no bound, or not yet composed
	drawer  *qr.Drawer                      // one for visitors and programs, so that both together are bounded

	began       time.Time
	health      health
	connections connections
	processors  *processors
	questions   *questions
	pauses      *pauses        // nil = there are processors for all
	closers     []func() error // in the order opened
}

// New opens everything and binds the listeners. The config must be valid by its own
// rules; whatever else can be wrong about it is found before the data folder or an
// address is touched. An error that the operator can put right is a [*config.Error];
// whatever was opened is closed again. New starts nothing: until Run, connections wait.
func New(ctx context.Context, cfg config.Config, o Options) (*Server, error) {
	s := &Server{
		config: cfg, roles: rolesOf(cfg), version: o.Version, asked: o.Reload, force: o.Force, log: o.Log, metrics: telemetry.New(o.Version),
		drawer: qr.NewDrawer(), processors: newProcessors(), pauses: newPauses(), questions: newQuestions(), began: time.Now().UTC().Truncate(time.Millisecond),
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *Server) open(ctx context.Context) error {
	err := checkDescriptors()
	if err != nil {
		return err
	}
	if s.ready, err = prepare(ctx, s.config, s.log, s.processors.work); err != nil {
		return err
	}
	lock, err := lockFolder(s.config.Data)
	if err != nil {
		return err
	}
	if s.traces, err = telemetry.NewTraces(ctx, s.version, os.Getenv); err != nil {
		return errors.Join(err, lock.Close())
	}
	if s.pauses != nil {
		s.closers = append(s.closers, s.pauses.clocks.close)
	}
	s.closers = append(s.closers, s.traces.Close) // after all that make spans
	s.closers = append(s.closers, lock.Close)
	if err := backup.Unfinished(s.config.Data); err != nil {
		return err
	}
	return s.openParts(ctx)
}

// compose builds the handlers on top of the stores, and puts them behind their
// listeners.
func (s *Server) compose(ctx context.Context) error {
	s.counted = s.metrics.Requests(s.traces.Tracer())
	var links *shorten.Services
	if s.decides != nil {
		links = s.newLinks()
	}
	if s.roles.works {
		s.recheck(links)
	}
	if s.listener == nil {
		s.standAlone()
		return nil
	}
	f, err := s.newFaces(ctx, links)
	if err != nil {
		return err
	}
	return s.stand(ctx, s.ready.certs, f)
}

// faces are what the listeners show.
type faces struct {
	clients  clientaddr.Rule
	pages    *web.Pages
	visitors *redirect.Handler
	programs http.Handler // nil = no API
	people   web.Config   // zero without an API
}

func (s *Server) newFaces(ctx context.Context, links *shorten.Services) (f faces, err error) {
	f.clients = clientaddr.New(s.ready.trusted...)
	if f.pages, err = web.NewPages(); err != nil {
		return f, err
	}
	if f.visitors, err = s.visitors(f.clients, f.pages); err != nil {
		return f, err
	}
	s.countProblems(f.visitors)
	if !s.roles.programs {
		return f, nil
	}
	if f.programs, err = s.programs(ctx, f.clients, links); err != nil {
		return f, err
	}
	if f.people, err = s.people(f.clients, f.pages, f.visitors, links); err != nil {
		return f, err
	}
	if f.people.Dashboard, err = web.NewDashboard(); err == nil && !f.people.Dashboard.Built() {
		s.log.InfoContext(ctx, "this build has no dashboard: make build adds it where Node.js 20.19 or newer is")
	}
	return f, err
}

// visitors is the handler of every path that is no route.
func (s *Server) visitors(clients clientaddr.Rule, pages *web.Pages) (*redirect.Handler, error) {
	key, err := s.derive("curt warning pages")
	if err != nil {
		return nil, err
	}
	passes, err := redirect.NewPasses(key)
	if err != nil {
		return nil, err
	}
	s.unknown = s.newBudget()
	resolver, err := redirect.NewResolver(redirect.ResolverConfig{
		Source: s.cache, Spender: s.links, IsBot: clicks.NewBotList().IsBot, Passes: passes,
	})
	if err != nil {
		return nil, err
	}
	strict, own := s.strictHost()
	return redirect.NewHandler(redirect.HandlerConfig{
		Resolver: resolver, Recorder: s.clicks.ring, Pages: pages, Hosts: s.origin.hosts(),
		StrictHost: strict, Own: own, Clients: clients, Unknown: s.unknown, Log: s.log, Transport: transport(s.config),
		Pictures: &redirect.Pictures{Drawer: s.drawer, Text: func(k link.Key) string { return qr.Text(s.origin.shortURL(k)) }},
	})
}

// programs is the handler of the API.
func (s *Server) programs(ctx context.Context, clients clientaddr.Rule, links *shorten.Services) (http.Handler, error) {
	var err error
	if s.keys, err = s.newKeys(ctx); err != nil {
		return nil, err
	}
	cursorKey, err := s.derive("curt cursors")
	if err != nil {
		return nil, err
	}
	stats := s.clicks.stats()
	s.bodies = bodies.New(bodies.Config{Metrics: s.metrics.Registerer()})
	s.live = analytics.NewLive(stats)
	return httpapi.New(httpapi.Config{
		Links: links, Stats: stats, Clicks: s.rawClicks(), Live: s.live, Auth: s.keys, Keys: s.keys, Shares: s.shares(), BaseURL: s.origin.base, Hosts: s.origin.names(),
		Moderator: s.decides, Review: s.desk, Health: s.condition, ClientAddr: addressOf(clients),
		CursorKey: cursorKey, Drawer: s.drawer, Bodies: s.bodies, Unknown: s.unknown, Aside: s.onceAside, Log: s.log,
	})
}

// addressOf returns what finds the address of a request's client.
func addressOf(clients clientaddr.Rule) func(*http.Request) netip.Addr {
	return func(r *http.Request) netip.Addr {
		return clients.Of(clientaddr.Peer(r.RemoteAddr), r.Header.Values("X-Forwarded-For"))
	}
}

// people is what the pages stand on; stand says what each listener offers.
func (s *Server) people(clients clientaddr.Rule, pages *web.Pages, visitors *redirect.Handler, links *shorten.Services) (web.Config, error) {
	key, err := s.derive("curt statistics pages")
	return web.Config{
		Pages: pages, Visitors: visitors, Links: links, Auth: s.keys, Keys: s.keys, Shares: s.shares(), Review: s.desk, Bodies: s.bodies,
		Stats: s.clicks.stats(), Drawer: s.drawer, EntryKey: key, Log: s.log,
		Hosts: auth.NewHosts(append(s.origin.names(), string(s.origin.host))...), BaseURL: s.origin.base,
		ShortURL: s.origin.shortURL, ClientAddr: addressOf(clients),
	}, err
}

// shares are what lets others read the statistics of a link.
func (s *Server) shares() *auth.Shares {
	return auth.NewShares(s.accounts.shares, s.accounts.keys, rand.Reader)
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until ctx ends, then lets the traffic end, counts the last clicks and
// closes everything. It returns nil when all of that worked. Call it once.
func (s *Server) Run(ctx context.Context) error {
	if err := shortenSlices(); err != nil {
		s.log.WarnContext(ctx, "redirects may wait while clicks are counted", slog.Any("err", err))
	}
	failed := make(chan error, 32) // one for each loop and listener: a send never waits
	background := context.WithoutCancel(ctx)
	running := stages{capture: begin(background, failed), fold: begin(background, failed)}
	if s.roles.serves() {
		running.fold = begin(background, failed, s.folding())
		running.capture = begin(background, failed, s.capturing()...)
	}
	running.support = begin(background, failed, s.support()...)
	running.traffic = s.accept(background, failed)
	s.health.started.Store(true)
	s.log.InfoContext(ctx, "listening", append(s.addresses(),
		slog.String("base_url", s.origin.base), slog.String("version", s.version), slog.Int("pid", os.Getpid()))...)
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		s.log.ErrorContext(ctx, "stopping", slog.Any("err", err))
	}
	s.drain(background)
	err = errors.Join(err, running.end(), s.close())
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	s.log.InfoContext(background, "stopped")
	return nil
}
