package lane_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/internal/cache"
	"curt/internal/cache/cachetest"
	"curt/internal/clicks"
	"curt/internal/clientaddr"
	"curt/internal/hosts/hoststest"
	"curt/internal/lane"
	"curt/internal/lane/proxyproto"
	"curt/internal/link"
	"curt/internal/redirect"
	"curt/internal/redirect/redirecttest"
)

const dest = "https://example.com/landing?a=b#part"

// links is a store with a link of every kind.
func links() *cachetest.Source {
	s := cachetest.NewSource()
	far := time.Now().Add(24 * time.Hour).UnixMilli()
	for code, t := range map[string]link.Target{
		"live": {}, "abcdefg": {NoIndex: true}, "moved": {Redirect: 301, NoIndex: true}, "temp": {Redirect: 307},
		"perm": {Redirect: 308}, "cdn": {Cacheable: true}, "gone": {Expires: 1}, "later": {Starts: far}, "ends": {Expires: far},
		"soon": {Redirect: 301, Expires: time.Now().Add(time.Minute).UnixMilli()},
		"fwd":  {ForwardQuery: true}, "off": {Status: link.Disabled, Fallback: "https://back.example/"}, "back": {Expires: 1, Fallback: "https://back.example/"},
		"wary": {Safety: link.Warn, Expires: 1, Fallback: "https://back.example/"}, "few": {Safety: link.Warn, Limited: true},
		"dead": {Status: link.Deleted}, "warn": {Safety: link.Warn}, "bad": {Safety: link.Blocked}, "law": {Safety: link.Legal},
	} {
		t.Destination = dest
		s.Put(link.Key{Code: link.Code(code)}, t)
	}
	s.Put(link.Key{Code: "circle"}, link.Target{Destination: "http://stranger.example:8080/mirror", Redirect: 302, Status: link.Active, Safety: link.Clean})
	s.Put(link.Key{Domain: "go.example", Code: "live"}, link.Target{Destination: "https://go.example.org/"})
	return s
}

// recorder keeps copies of clicks, without their time.
type recorder struct {
	mu     sync.Mutex
	clicks []clicks.Raw
}

func (r *recorder) Record(c *clicks.Raw) bool {
	kept := *c
	kept.Time = 0
	for _, b := range []*[]byte{&kept.Domain, &kept.Code, &kept.UserAgent, &kept.Referrer, &kept.Language, &kept.Query} {
		*b = bytes.Clone(*b)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clicks = append(r.clicks, kept)
	return true
}

func (r *recorder) take() []clicks.Raw {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.clicks
	r.clicks = nil
	return taken
}

// rig is a server: with a lane in front, or net/http alone.
type rig struct {
	addr    string
	lane    *lane.Lane // nil without one
	cache   *cache.Tiered
	rec     *recorder
	source  *cachetest.Source
	behind  *http.Server
	handler http.Handler
	stop    func()
}

// setup is what an option may change.
type setup struct {
	lane   lane.Config
	links  redirect.HandlerConfig
	passes *redirect.Passes
	limits *redirect.Limits
	server *http.Server
	still  bool // the lane's clock stands: the test moves it by At
}

type option func(*setup)

// visitors builds what both servers share: a cache, and the handler of links.
func visitors(tb testing.TB, cfg *redirect.HandlerConfig, s *cachetest.Source, rec redirect.Recorder, passes *redirect.Passes, limits *redirect.Limits) (*redirect.Handler, *cache.Tiered) {
	tb.Helper()
	c, err := cache.New(cache.Config{Prepare: redirect.NewPreparer(cfg.Transport)}, s)
	if err != nil {
		tb.Fatal(err)
	}
	if cfg.Resolver, err = redirect.NewResolver(redirect.ResolverConfig{Source: c, Spender: s, Passes: passes, Limits: limits}); err != nil {
		tb.Fatal(err)
	}
	cfg.Recorder, cfg.Pages = rec, redirecttest.Pages{}
	h, err := redirect.NewHandler(*cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return h, c
}

// routed is what the server puts around the links: an API that echoes, and a page.
func routed(links http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/"):
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, "body", http.StatusBadRequest)
				return
			}
			w.Header().Set("Content-Type", "text/plain")
			body = append([]byte(r.Method+" "+r.URL.Path+" "), body...)
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = w.Write(body)
		case r.URL.Path == "/healthz":
			_, _ = io.WriteString(w, "ok")
		default:
			links.ServeHTTP(w, r)
		}
	})
}

func start(tb testing.TB, on bool, options ...option) *rig {
	tb.Helper()
	r := &rig{rec: &recorder{}, source: links(), behind: &http.Server{
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 75 * time.Second, MaxHeaderBytes: 12 << 10,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}}
	c := setup{server: r.behind}
	c.links.Hosts = hoststest.New(tb, "https://links.example", "go.example")
	c.lane.Pages, c.lane.Log, c.lane.Recorder = []string{"healthz"}, slog.New(slog.NewTextHandler(tb.Output(), nil)), r.rec
	for _, o := range options {
		o(&c)
	}
	var h *redirect.Handler
	h, c.lane.Cache = visitors(tb, &c.links, r.source, c.lane.Recorder, c.passes, c.limits)
	c.lane.Visitors, c.lane.Clients, c.lane.Limits, r.cache = h, c.links.Clients, c.limits, c.lane.Cache
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	r.addr, r.handler = l.Addr().String(), routed(h)
	if on {
		r.begin(tb, &c, l)
	} else {
		if c.lane.ProxyProtocol {
			l = proxyproto.Listener(l, c.lane.Clients)
		}
		r.behind.Handler = r.handler
		var served sync.WaitGroup
		served.Go(func() { _ = r.behind.Serve(l) })
		r.stop = sync.OnceFunc(func() { _ = r.behind.Close(); served.Wait() })
	}
	tb.Cleanup(r.stop)
	return r
}

// begin puts a lane in front.
func (r *rig) begin(tb testing.TB, c *setup, l net.Listener) {
	tb.Helper()
	var err error
	if r.lane, err = lane.New(c.lane); err != nil {
		tb.Fatal(err)
	}
	handler := r.handler
	if wrap := r.behind.Handler; wrap != nil { // an option's: it looks on
		handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			wrap.ServeHTTP(w, q)
			r.handler.ServeHTTP(w, q)
		})
	}
	r.behind.Handler, r.behind.ConnContext = r.lane.Handler(handler), r.lane.ConnContext
	r.behind.ConnState = r.lane.ConnState
	ctx, cancel := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	if !c.still {
		loops.Go(func() { _ = r.lane.Run(ctx) })
	}
	loops.Go(func() { _ = r.behind.Serve(r.lane.Listener()) })
	var served sync.WaitGroup
	served.Go(func() {
		if err := r.lane.Serve(l); !errors.Is(err, net.ErrClosed) {
			tb.Error(err)
		}
	})
	r.stop = sync.OnceFunc(func() {
		_ = l.Close()
		served.Wait()
		over, end := context.WithCancel(ctx)
		end()
		_ = r.lane.Shutdown(over) // at once
		_ = r.behind.Close()
		r.lane.AwaitLingering(over)
		cancel()
		loops.Wait()
		if n := r.lane.Stats().Panics; n != 0 {
			tb.Errorf("%d panics", n)
		}
	})
}

// dial connects; the connection is closed at the end of the test.
func (r *rig) dial(tb testing.TB) *net.TCPConn {
	tb.Helper()
	var d net.Dialer
	nc, err := d.DialContext(context.Background(), "tcp", r.addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = nc.Close() })
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		tb.Fatal(nc)
	}
	_ = tcp.SetDeadline(time.Now().Add(3 * time.Minute))
	return tcp
}

// exchange sends the pieces, ends its half, and returns all that is answered until
// the server closes.
func (r *rig) exchange(tb testing.TB, pieces ...string) string {
	tb.Helper()
	nc := r.dial(tb)
	defer func() { _ = nc.Close() }()
	go func() {
		for _, p := range pieces {
			if _, err := io.WriteString(nc, p); err != nil {
				return // refused early
			}
		}
		_ = nc.CloseWrite()
	}()
	answer, err := io.ReadAll(nc)
	if err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset by peer") {
		tb.Fatalf("%q: %v after %q", pieces, err, answer)
	}
	return string(answer)
}

// answer is one response on a connection.
type answer struct {
	Status string
	Fields map[string]string // without Date
	Body   string
}

// answers splits what a server sent. A body that belongs to HEAD is not sent, which
// shows because the next answer, or the end, comes at once.
func answers(tb testing.TB, text string) []answer {
	tb.Helper()
	var all []answer
	for text != "" {
		head, rest, ok := strings.Cut(text, "\r\n\r\n")
		if !ok {
			tb.Fatalf("no end of the head in %q", text)
		}
		lines := strings.Split(head, "\r\n")
		a := answer{Status: lines[0], Fields: map[string]string{}}
		for _, l := range lines[1:] {
			name, value, ok := strings.Cut(l, ": ")
			if _, twice := a.Fields[name]; !ok || twice {
				tb.Fatalf("line %q in %q", l, head)
			}
			a.Fields[name] = value
		}
		delete(a.Fields, "Date")
		size := len(rest) // until the server closes
		if v, ok := a.Fields["Content-Length"]; ok {
			size = 0
			for _, c := range v {
				size = size*10 + int(c-'0')
			}
		}
		if strings.HasPrefix(rest, "HTTP/1.") || rest == "" {
			size = 0
		}
		if size > len(rest) {
			tb.Fatalf("%d bytes of %q promised", size, rest)
		}
		a.Body, text = rest[:size], rest[size:]
		all = append(all, a)
	}
	return all
}

// eventually waits for what another goroutine is about to do.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(3 * time.Minute); !ok(); {
		if time.Now().After(end) {
			tb.Fatalf("not so: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func trusting(cidr string) option {
	return func(s *setup) { s.links.Clients = clientaddr.New(netip.MustParsePrefix(cidr)) }
}

func withTLS(c *tls.Config) option { return func(s *setup) { s.lane.TLS = c } }

func still(s *setup) { s.still = true }

func status(a answer) string {
	if fields := strings.SplitN(a.Status, " ", 3); len(fields) == 3 {
		return fields[1]
	}
	return a.Status
}

func statuses(all []answer) string {
	var s []string
	for _, a := range all {
		s = append(s, status(a))
	}
	return strings.Join(slices.Clip(s), " ")
}
