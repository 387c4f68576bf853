package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"curt/bench/internal/fill"
	"curt/bench/internal/load"
	"curt/bench/internal/process"
	"curt/bench/internal/traffic"
)

type bench struct {
	cfg    config
	folder string
	links  *fill.Links
	codes  []string
	admin  string // of the first curt
	copies int    // of the store, so far
	cold   int    // links beside codes, for misses
	asked  int    // of them, so far
}

func newBench(ctx context.Context, c config, folder string) (*bench, error) {
	b := &bench{cfg: c, folder: folder}
	var err error
	if c.mixed || c.table {
		b.cold = int(1000 * (c.mixedFor + time.Minute).Seconds()) // 1 % of 100,000/s
	}
	if b.links, err = fill.Fill(ctx, filepath.Join(folder, "links"), c.links+b.cold, os.Stderr); err != nil {
		return nil, err
	}
	for i := range c.links {
		b.codes = append(b.codes, string(b.links.Code(i)))
	}
	return b, b.index(ctx)
}

// index lets curt fill its search index once, which a store that was filled from
// outside does not have yet: no figure shall hold the cost of that.
func (b *bench) index(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Minute, errors.New("the search index is not complete after 10 minutes"))
	defer cancel()
	p, err := b.curt(ctx, b.cfg.curt, "on", b.links.Folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	for !strings.Contains(p.Log(), `"complete":true`) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
	return nil
}

// start starts those that were asked for; the first is what the others are compared
// with. What was started is returned even with an error.
func (b *bench) start(ctx context.Context) (servers []*server, err error) {
	type starter struct {
		name  string
		start func(context.Context) (*process.Server, error)
	}
	for _, s := range []starter{
		{"curt", func(ctx context.Context) (*process.Server, error) {
			return b.curt(ctx, b.cfg.curt, "on", b.links.Folder)
		}},
		{"against", func(ctx context.Context) (*process.Server, error) { return b.other(ctx, b.cfg.against, "on") }},
		{"nginx", func(ctx context.Context) (*process.Server, error) { return b.nginx(ctx, "off") }},
		{"nginx-log", func(ctx context.Context) (*process.Server, error) {
			return b.nginx(ctx, filepath.Join(b.folder, "access.log")+" clicks buffer=64k flush=1s")
		}},
		{"floor", b.floor},
		{"net/http", func(ctx context.Context) (*process.Server, error) { return b.other(ctx, b.cfg.curt, "off") }},
	} {
		if len(b.cfg.only) > 0 && !slices.Contains(b.cfg.only, s.name) || s.name == "against" && b.cfg.against == "" {
			continue
		}
		p, err := s.start(ctx)
		if err != nil {
			return servers, fmt.Errorf("%s: %w", s.name, err)
		}
		servers = append(servers, &server{name: s.name, process: p})
	}
	return servers, nil
}

// curt is started with folding held back, unless -fold says otherwise: capture is part
// of a redirect.
func (b *bench) curt(ctx context.Context, binary, lane, data string) (*process.Server, error) {
	admin, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	if data == b.links.Folder {
		b.admin = admin.String()
	}
	return process.Start(ctx, process.Command{
		Path: binary, Args: []string{"serve"}, Core: 0, Ready: "/readyz",
		Env: []string{
			"CURT_LISTEN=127.0.0.1:0", "CURT_ADMIN_LISTEN=" + admin.String(), "CURT_DATA=" + data,
			"CURT_LANE=" + lane, "CURT_FOLD=" + b.cfg.fold, "CURT_ADMIN_KEY=" + adminKey,
			"CURT_UNKNOWN_LIMIT=off", // all visitors have one address
		},
	})
}

// other is a second curt, on a copy of the store.
func (b *bench) other(ctx context.Context, binary, lane string) (*process.Server, error) {
	b.copies++
	data := filepath.Join(b.folder, "copy-"+strconv.Itoa(b.copies))
	if err := os.CopyFS(data, os.DirFS(b.links.Folder)); err != nil {
		return nil, fmt.Errorf("copy the store: %w", err)
	}
	return b.curt(ctx, binary, lane, data)
}

// floor is the loop on epoll.
func (b *bench) floor(ctx context.Context) (*process.Server, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	return process.Start(ctx, process.Command{
		Path: b.cfg.floor, Args: []string{strconv.Itoa(int(addr.Port()))}, Core: 0, Ready: "/readyz",
	})
}

// adminKey is the key of every curt that is measured.
const adminKey = "curt_bench_0123456789abcdefghijklmnop"

// nginxConfig answers from a map, as one would build a shortener of nginx. One
// process, so that its CPU time is all there is.
const nginxConfig = `daemon off; master_process off; pid %[1]s/nginx.pid; error_log stderr;
events { worker_connections 4096; }
http {
	log_format clicks '$remote_addr "$http_user_agent" "$http_referer"';
	access_log %[3]s; server_tokens off; keepalive_requests 1000000000; keepalive_timeout 75s;
	client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	map_hash_max_size 1048576; map_hash_bucket_size 128;
	map $uri $to { include %[1]s/map.conf; }
	server {
		listen 127.0.0.1:%[2]d backlog=4096;
		location = /readyz { return 200; }
		location / {
			add_header Cache-Control "private, max-age=0"; add_header X-Robots-Tag noindex;
			if ($to = "") { return 404; }
			return 302 $to;
		}
	}
}
`

func (b *bench) nginx(ctx context.Context, log string) (*process.Server, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(b.folder, "nginx-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	var lines strings.Builder
	urls := traffic.NewURLs()
	seen := map[string]bool{}
	for i, code := range b.codes {
		// nginx compares without case: the second link of such a pair leads to the first's.
		if lower := strings.ToLower(code); seen[lower] {
			continue
		} else {
			seen[lower] = true
		}
		_, _ = fmt.Fprintf(&lines, "/%s %q;\n", code, urls.Append(nil, uint64(i)))
	}
	conf := filepath.Join(folder, "nginx.conf")
	err = errors.Join(
		os.WriteFile(filepath.Join(folder, "map.conf"), []byte(lines.String()), 0o600),
		os.WriteFile(conf, []byte(fmt.Sprintf(nginxConfig, folder, addr.Port(), log)), 0o600))
	if err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	// nginx does not announce its address as process.Start wants it.
	script := fmt.Sprintf(`echo '{"msg":"listening","addr":"%s"}' >&2; exec nginx -p %s -c %s`, addr, folder, conf)
	return process.Start(ctx, process.Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: os.Environ(), Core: 0, Ready: "/readyz"})
}

func freeAddr(ctx context.Context) (netip.AddrPort, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("find a free port: %w", err)
	}
	addr, err := netip.ParseAddrPort(l.Addr().String())
	return addr, errors.Join(err, l.Close())
}

// browserFields are those that browsers send beside what tells visitors apart.
const browserFields = "\r\nConnection: keep-alive\r\nsec-ch-ua: \"Chromium\";v=\"140\", \"Not=A?Brand\";v=\"24\"\r\nsec-ch-ua-mobile: ?0" +
	"\r\nsec-ch-ua-platform: \"Linux\"\r\nUpgrade-Insecure-Requests: 1\r\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8" +
	"\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-User: ?1\r\nSec-Fetch-Dest: document\r\nAccept-Encoding: gzip, deflate, br, zstd"

// redirects asks for the links as browsers do. Rate 0 is a closed loop.
func (b *bench) redirects(addr netip.AddrPort, conns int, rate float64) load.Stream {
	visitors, random := traffic.NewVisitors(), rand.New(rand.NewPCG(rand.Uint64(), 2))
	var zipf *traffic.Zipf
	if b.cfg.zipf {
		zipf = traffic.NewZipf(len(b.codes))
	}
	host := " HTTP/1.1\r\nHost: localhost:" + strconv.Itoa(int(addr.Port()))
	want := http.StatusFound
	return load.Stream{
		Name: "redirects", Addr: addr, Conns: conns, Rate: rate, Wants: func() int { return want },
		Next: func(r []byte) []byte {
			i := 0
			if zipf != nil {
				i = zipf.Rank(random)
			} else {
				i = random.IntN(len(b.codes))
			}
			v := visitors.Draw(random)
			r, want = b.target(append(r, "GET /"...), b.codes[i], random)
			r = append(r, host...)
			r = append(r, browserFields...)
			r = field(r, "\r\nUser-Agent: ", v.UserAgent)
			r = field(r, "\r\nReferer: ", v.Referrer)
			r = field(r, "\r\nAccept-Language: ", v.Language)
			return append(r, "\r\n\r\n"...)
		},
	}
}

// target appends a code, or with mixed one that is in no cache (1 %), one that was never
// made (1 %), or a call of the API (0.1 %), and returns the status that answers it.
func (b *bench) target(r []byte, code string, random *rand.Rand) ([]byte, int) {
	if !b.cfg.mixed {
		return append(r, code...), http.StatusFound
	}
	switch n := random.IntN(1000); {
	case n < 10:
		b.asked = (b.asked + 1) % b.cold
		return append(r, b.links.Code(b.cfg.links+b.asked)...), http.StatusFound
	case n < 20:
		return fmt.Appendf(r, "x%09x", random.Uint64()>>28), http.StatusNotFound
	case n == 20:
		return append(append(append(r, "api/v1/links/"...), code...), " HTTP/1.1\r\nAuthorization: Bearer "+adminKey+"\r\nX-Was:"...), http.StatusOK
	}
	return append(r, code...), http.StatusFound
}

// idle prints what connections cost that had an answer and wait.
func (b *bench) idle(ctx context.Context, s *server, out io.Writer) (each float64, err error) {
	before, err := process.RSS(s.process.PID)
	if err != nil {
		return 0, err
	}
	var all []net.Conn
	defer func() {
		for _, nc := range all {
			err = errors.Join(err, nc.Close())
		}
	}()
	answer := make([]byte, 4<<10)
	for i := range b.cfg.idle {
		nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.process.Addr.String())
		if err != nil {
			return 0, fmt.Errorf("open connection %d: %w", i, err)
		}
		all = append(all, nc)
		request := "GET /" + b.codes[i%len(b.codes)] + " HTTP/1.1\r\nHost: localhost" + browserFields + "\r\n\r\n"
		if _, err := io.WriteString(nc, request); err != nil {
			return 0, fmt.Errorf("ask on connection %d: %w", i, err)
		}
		if _, err := nc.Read(answer); err != nil {
			return 0, fmt.Errorf("answer on connection %d: %w", i, err)
		}
	}
	after, err := process.RSS(s.process.PID)
	if err != nil {
		return 0, err
	}
	each = float64(after-before) / float64(b.cfg.idle)
	_, err = fmt.Fprintf(out, "%d idle connections: %.2f KiB each; %d MiB before, %d MiB after\n", b.cfg.idle, each/1024, before>>20, after>>20)
	return each, err
}

func field(b []byte, name string, value []byte) []byte {
	if len(value) == 0 {
		return b
	}
	return append(append(b, name...), value...)
}

// warm asks each server for every link once, so that all are hits from then on.
func (b *bench) warm(ctx context.Context, servers []*server) error {
	for _, s := range servers {
		i := 0
		stream := b.redirects(s.process.Addr, b.cfg.conns, 0)
		stream.Want, stream.Wants = http.StatusFound, nil
		host := " HTTP/1.1\r\nHost: localhost\r\n\r\n"
		stream.Next = func(r []byte) []byte {
			i = (i + 1) % len(b.codes)
			return append(append(append(r, "GET /"...), b.codes[i]...), host...)
		}
		for total := uint64(0); total < uint64(len(b.codes)); {
			o, err := load.Run(ctx, load.Plan{Streams: []load.Stream{stream}, Measure: 500 * time.Millisecond})
			if err := errors.Join(err, o.Wrong()); err != nil {
				return fmt.Errorf("warm %s: %w", s.name, err)
			}
			total += o.Answered()
		}
	}
	return nil
}

// profile takes a CPU profile of the first curt under the load.
func (b *bench) profile(ctx context.Context, servers []*server) error {
	if b.cfg.profile == "" {
		return nil
	}
	done := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.admin+"/debug/pprof/profile?seconds=5", http.NoBody)
		if err != nil {
			done <- err
			return
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			done <- err
			return
		}
		body, err := io.ReadAll(bufio.NewReader(res.Body))
		done <- errors.Join(err, res.Body.Close(), os.WriteFile(b.cfg.profile, body, 0o600))
	}()
	_, err := load.Run(ctx, load.Plan{
		Streams: []load.Stream{b.redirects(servers[0].process.Addr, b.cfg.conns, 0)}, Measure: 6 * time.Second,
	})
	return errors.Join(err, <-done)
}
