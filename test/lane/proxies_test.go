package lane_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// proxy is a program between clients and curt, as lenient as its settings allow: what
// it lets through is what we want to see. All keep connections to the upstream and use
// them again for other clients.
type proxy struct {
	name, program, pack string
	config              string // %[1]s = its address, %[2]s = the upstream's host, %[3]s its port, %[4]s = a folder
	arguments           func(dir, config, address string) []string
}

func proxies() []proxy {
	return []proxy{
		{"nginx", "nginx", "nginx-light", `daemon off; master_process off; worker_processes 1; pid %[4]s/pid; error_log %[4]s/log crit;
events { worker_connections 256; }
http {
	access_log off; keepalive_timeout 3m; proxy_connect_timeout 3m; proxy_read_timeout 3m; proxy_send_timeout 3m; client_body_temp_path %[4]s/body; proxy_temp_path %[4]s/proxy;
	ignore_invalid_headers off; underscores_in_headers on; merge_slashes off;
	upstream curt { server %[2]s:%[3]s; keepalive 4; }
	server {
		listen %[1]s;
		location / {
			proxy_pass http://curt; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
			proxy_request_buffering off; proxy_buffering off; proxy_ignore_client_abort on; proxy_next_upstream off;
		}
	}
}
`, func(dir, config, _ string) []string {
			return []string{"-p", dir, "-c", config, "-e", filepath.Join(dir, "log")}
		}},
		{"HAProxy", "haproxy", "haproxy", `global
	nbthread 1
	maxconn 500
defaults
	mode http
	timeout connect 3m
	timeout client 3m
	timeout server 3m
frontend clients
	bind %[1]s
	option accept-invalid-http-request
	default_backend curt
backend curt
	http-reuse always
	option accept-invalid-http-response
	server one %[2]s:%[3]s
`, func(_, config, _ string) []string { return []string{"-db", "-f", config} }},
		{"Varnish", "varnishd", "varnish", `vcl 4.1;
# %[1]s %[4]s
backend curt { .host = "%[2]s"; .port = "%[3]s"; }
sub vcl_recv { return (pass); }
`, func(dir, config, address string) []string {
			return []string{
				"-F", "-j", "none", "-n", filepath.Join(dir, "work"), "-a", address, "-f", config, "-s", "malloc,32m",
				"-p", "timeout_idle=180", "-p", "connect_timeout=180", "-p", "first_byte_timeout=180", "-p", "between_bytes_timeout=180",
			}
		}},
	}
}

// start runs the proxy in front of the upstream and returns its address.
func (p proxy) start(t *testing.T, upstream string) string {
	t.Helper()
	path := program(t, p.program, p.pack)
	address := curttest.FreeAddr(t)
	host, port, err := net.SplitHostPort(upstream)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	if err := os.WriteFile(config, fmt.Appendf(nil, p.config, address, host, port, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, p.arguments(dir, config, address)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	said := &output{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // by its signal
	}()
	t.Cleanup(func() {
		_ = cmd.Cancel() // it may have ended
		<-ended
	})
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = c.Close()
			return address
		}
		select {
		case <-ended:
			t.Fatalf("%s ended: %s", p.name, said)
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not listen: %s", p.name, said)
		}
	}
}
