package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"curt/bench/internal/fill"
	"curt/bench/internal/process"
	"curt/bench/internal/traffic"
)

// launcher starts servers on the same links.
type launcher struct {
	cfg    config
	folder string
	links  *fill.Links
	codes  []string
	admin  string // of the first curt
	copies int    // of the store, so far
}

// index lets curt fill its search index once, which a store that was filled from
// outside does not have yet: no figure shall hold the cost of that.
func (l *launcher) index(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Minute, errors.New("the search index is not complete after 10 minutes"))
	defer cancel()
	p, err := l.curt(ctx, l.cfg.curt, "on", l.links.Folder)
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
func (l *launcher) start(ctx context.Context) (servers []*server, err error) {
	type starter struct {
		name  string
		start func(context.Context) (*process.Server, error)
	}
	for _, s := range []starter{
		{"curt", func(ctx context.Context) (*process.Server, error) {
			return l.curt(ctx, l.cfg.curt, "on", l.links.Folder)
		}},
		{"against", func(ctx context.Context) (*process.Server, error) { return l.other(ctx, l.cfg.against, "on") }},
		{"nginx", func(ctx context.Context) (*process.Server, error) { return l.nginx(ctx, "off") }},
		{"nginx-log", func(ctx context.Context) (*process.Server, error) {
			return l.nginx(ctx, filepath.Join(l.folder, "access.log")+" clicks buffer=64k flush=1s")
		}},
		{"floor", l.floor},
		{"fasthttp", func(ctx context.Context) (*process.Server, error) { return l.library(ctx, "fasthttp") }},
		{"gnet", func(ctx context.Context) (*process.Server, error) { return l.library(ctx, "gnet") }},
		{"net/http", func(ctx context.Context) (*process.Server, error) { return l.other(ctx, l.cfg.curt, "off") }},
	} {
		if len(l.cfg.only) > 0 && !slices.Contains(l.cfg.only, s.name) || s.name == "against" && l.cfg.against == "" ||
			l.cfg.frontend == "" && (s.name == "fasthttp" || s.name == "gnet") {
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
func (l *launcher) curt(ctx context.Context, binary, lane, data string) (*process.Server, error) {
	admin, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	if data == l.links.Folder {
		l.admin = admin.String()
	}
	return process.Start(ctx, process.Command{
		Path: binary, Args: []string{"serve"}, Core: 0, Ready: "/readyz",
		Env: []string{
			"CURT_LISTEN=127.0.0.1:0", "CURT_ADMIN_LISTEN=" + admin.String(), "CURT_DATA=" + data,
			"CURT_LANE=" + lane, "CURT_FOLD=" + l.cfg.fold, "CURT_ADMIN_KEY=" + adminKey,
			"CURT_UNKNOWN_LIMIT=off", // all visitors have one address
		},
	})
}

// other is a second curt, on a copy of the store.
func (l *launcher) other(ctx context.Context, binary, lane string) (*process.Server, error) {
	l.copies++
	data := filepath.Join(l.folder, "copy-"+strconv.Itoa(l.copies))
	if err := os.CopyFS(data, os.DirFS(l.links.Folder)); err != nil {
		return nil, fmt.Errorf("copy the store: %w", err)
	}
	return l.curt(ctx, binary, lane, data)
}

// floor is the loop on epoll.
func (l *launcher) floor(ctx context.Context) (*process.Server, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	return process.Start(ctx, process.Command{
		Path: l.cfg.floor, Args: []string{strconv.Itoa(int(addr.Port()))}, Core: 0, Ready: "/readyz",
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

func (l *launcher) nginx(ctx context.Context, log string) (*process.Server, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(l.folder, "nginx-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	seen := map[string]bool{}
	lines := l.lines(func(code string) bool {
		// nginx compares without case: the second link of such a pair leads to the first's.
		lower := strings.ToLower(code)
		defer func() { seen[lower] = true }()
		return !seen[lower]
	})
	conf := filepath.Join(folder, "nginx.conf")
	err = errors.Join(
		os.WriteFile(filepath.Join(folder, "map.conf"), lines, 0o600),
		os.WriteFile(conf, []byte(fmt.Sprintf(nginxConfig, folder, addr.Port(), log)), 0o600))
	if err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	// nginx does not announce its address as process.Start wants it.
	script := fmt.Sprintf(`echo '{"msg":"listening","addr":"%s"}' >&2; exec nginx -p %s -c %s`, addr, folder, conf)
	return process.Start(ctx, process.Command{Path: "/bin/sh", Args: []string{"-c", script}, Env: os.Environ(), Core: 0, Ready: "/readyz"})
}

// lines are the links as nginx's map has them.
func (l *launcher) lines(taken func(code string) bool) (lines []byte) {
	urls := traffic.NewURLs()
	for i, code := range l.codes {
		if taken(code) {
			lines = fmt.Appendf(lines, "/%s %q;\n", code, urls.Append(nil, uint64(i)))
		}
	}
	return lines
}

// library is an HTTP library in place of the lane.
func (l *launcher) library(ctx context.Context, name string) (*process.Server, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(l.folder, name+"-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	links := filepath.Join(folder, "map.conf")
	if err := os.WriteFile(links, l.lines(func(string) bool { return true }), 0o600); err != nil {
		return nil, fmt.Errorf("write the links: %w", err)
	}
	return process.Start(ctx, process.Command{
		Path: l.cfg.frontend, Core: 0, Ready: "/readyz",
		Args: []string{"-library", name, "-map", links, "-listen", addr.String(), "-clicks", filepath.Join(folder, "clicks")},
	})
}

func freeAddr(ctx context.Context) (netip.AddrPort, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("find a free port: %w", err)
	}
	addr, err := netip.ParseAddrPort(listener.Addr().String())
	return addr, errors.Join(err, listener.Close())
}
