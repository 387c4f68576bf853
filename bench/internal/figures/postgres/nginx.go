package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"curt/bench/internal/figures"
	"curt/bench/internal/process"
)

// nginxConfig answers everything with one redirect and writes nothing down: what a process
// costs that is only asked. One process, so that its CPU time is all there is.
const nginxConfig = `daemon off; master_process off; pid %[1]s/nginx.pid; error_log stderr;
events { worker_connections 1024; }
http {
	access_log off; server_tokens off; keepalive_requests 1000000000; keepalive_timeout 75s;
	client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	server {
		listen %[2]s backlog=4096;
		location = /readyz { return 200; }
		location / { return 302 https://example.com/where/it/leads; }
	}
}
`

// nginxes takes a sample with n processes of nginx.
func nginxes(ctx context.Context, b *figures.Bench, n int, f func(context.Context, ...*process.Server) (figures.Sample, error)) (r figures.Sample, err error) {
	var servers []*process.Server
	defer func() {
		for _, s := range servers {
			err = errors.Join(err, s.Stop())
		}
	}()
	for range n {
		folder, drop, err := b.Folder()
		if err != nil {
			return figures.Sample{}, err
		}
		defer func() { _ = drop() }() // of temporary files only
		s, err := nginx(ctx, folder)
		if err != nil {
			return figures.Sample{}, err
		}
		servers = append(servers, s)
	}
	return f(ctx, servers...)
}

func nginx(ctx context.Context, folder string) (*process.Server, error) {
	addr, err := figures.FreeAddr(ctx)
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConfig, folder, addr), 0o600); err != nil {
		return nil, fmt.Errorf("configure nginx: %w", err)
	}
	// nginx does not announce its address as process.Start wants it.
	script := strings.Join([]string{`echo '{"msg":"listening","addr":"` + addr + `"}' >&2`, `exec nginx -p "$0" -c "$1"`}, "; ")
	return process.Start(ctx, process.Command{Path: "/bin/sh", Args: []string{"-c", script, folder, conf}, Env: os.Environ(), Core: -1, Ready: "/readyz"})
}
