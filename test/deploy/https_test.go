package deploy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// public is the name of the examples.
const public = "go.example.com"

// door is a server that speaks HTTPS in front of curt, with an example of deploy as its
// configuration.
type door struct {
	name string
	// open writes the configuration for these addresses into a folder and returns the
	// command that runs it.
	open func(t *testing.T, dir string, at doorway) *exec.Cmd
}

// doorway is what of an example is another machine's.
type doorway struct {
	http, https, curt string // addresses
	cert, key         string
}

func doors() []door {
	return []door{
		{"nginx", func(t *testing.T, dir string, at doorway) *exec.Cmd {
			t.Helper()
			return nginx(t, dir, at, "/deploy/nginx/curt.conf", "127.0.0.1:8080", at.curt)
		}},
		{"Caddy", func(t *testing.T, dir string, at doorway) *exec.Cmd {
			t.Helper()
			return caddy(t, dir, at, "/deploy/caddy/Caddyfile", "127.0.0.1:8080", at.curt)
		}},
	}
}

// nginx returns the command that runs nginx with an example, in which the pairs are replaced.
func nginx(t *testing.T, dir string, at doorway, example string, pairs ...string) *exec.Cmd {
	t.Helper()
	text := fill(t, root+example, append(pairs,
		"listen 80;", "listen "+at.http+";", "listen 443 ssl http2;", "listen "+at.https+" ssl http2;",
		"/etc/letsencrypt/live/go.example.com/fullchain.pem", at.cert, "/etc/letsencrypt/live/go.example.com/privkey.pem", at.key)...)
	text = fmt.Sprintf("daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/log;\nevents { worker_connections 256; }\n"+
		"http {\naccess_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;\n%[2]s\n}\n", dir, text)
	config := filepath.Join(dir, "nginx.conf")
	write(t, config, text)
	return exec.Command(tool(t, "nginx", "apt-get install nginx-light"), "-p", dir, "-c", config, "-e", filepath.Join(dir, "log"))
}

// caddy is nginx for Caddy.
func caddy(t *testing.T, dir string, at doorway, example string, pairs ...string) *exec.Cmd {
	t.Helper()
	_, plain, _ := net.SplitHostPort(at.http)
	_, secure, _ := net.SplitHostPort(at.https)
	// A certificate of our own instead of one from an authority, and the name that
	// Caddy had for a setting before 2.6.4: Debian has an older one.
	text := fill(t, root+example, append(pairs, "go.example.com {", "go.example.com {\n\ttls "+at.cert+" "+at.key,
		"request_buffers 64KiB", "buffer_requests\n\t\tmax_buffer_size 64KiB")...)
	config := filepath.Join(dir, "Caddyfile")
	write(t, config, fmt.Sprintf("{\n\tadmin off\n\thttp_port %s\n\thttps_port %s\n\tdefault_bind 127.0.0.1\n}\n%s", plain, secure, text))
	cmd := exec.Command(tool(t, "caddy", "scripts/unpack caddy"), "run", "--config", config)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	return cmd
}

// fill reads an example and replaces what must stand in it.
func fill(t *testing.T, file string, pairs ...string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		if !bytes.Contains(text, []byte(pairs[i])) {
			t.Fatalf("%s says no %q", file, pairs[i])
		}
	}
	return strings.NewReplacer(pairs...).Replace(string(text))
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestHTTPSInFront runs the examples of servers in front of curt as they stand: links
// work under the public name, plain HTTP is sent to HTTPS, and curt sees the visitor's
// address, whatever the visitor claims.
func TestHTTPSInFront(t *testing.T) {
	t.Parallel()
	for _, d := range doors() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			s := curttest.Start(t, curttest.Options{Env: []string{
				"CURT_BASE_URL=https://" + public, "CURT_TRUSTED_PROXIES=127.0.0.1/32,::1/128", "CURT_UNKNOWN_LIMIT=3/h", "CURT_STRICT_HOST=true",
			}})
			cert, key := curttest.Certificate(t, public)
			at := doorway{curttest.FreeAddr(t), curttest.FreeAddr(t), s.Addr, cert, key}
			curttest.Begin(t, d.open(t, t.TempDir(), at), at.https, 3*time.Minute)
			checkDoor(t, at)
		})
	}
}

// visitor is a client at an address of its own that finds the public name at the door.
func visitor(t *testing.T, at doorway, from string) *http.Client {
	t.Helper()
	text, err := os.ReadFile(at.cert)
	if err != nil {
		t.Fatal(err)
	}
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(text)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: known}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			to := at.https
			if strings.HasSuffix(address, ":80") {
				to = at.http
			}
			return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(ctx, network, to)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// reply is what a visitor gets.
type reply struct {
	status   int
	major    int // version of HTTP
	location string
	body     string
}

// call sends a request, again while the answer is that of a busy machine: unavailable, which counts for nothing.
func call(t *testing.T, c *http.Client, method, url, body string, lines ...string) reply {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if a := callOnce(t, c, method, url, body, lines...); a.status != http.StatusServiceUnavailable || time.Now().After(end) {
			return a
		}
	}
}

func callOnce(t *testing.T, c *http.Client, method, url, body string, lines ...string) reply {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		q.Header.Add(name, value)
	}
	a, err := c.Do(q)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{a.StatusCode, a.ProtoMajor, a.Header.Get("Location"), string(text)}
}

func checkDoor(t *testing.T, at doorway) {
	t.Helper()
	c := visitor(t, at, "127.0.0.2")
	a := call(t, c, http.MethodPost, "https://"+public+"/api/v1/links", `{"long_url":"https://example.com/a?b=%2f#c"}`,
		"Authorization: Bearer "+curttest.Key, "Content-Type: application/json")
	var l struct {
		Code string `json:"short_code"`
		URL  string `json:"short_url"`
	}
	if err := json.Unmarshal([]byte(a.body), &l); err != nil || a.status != http.StatusCreated || l.URL != "https://"+public+"/"+l.Code {
		t.Fatalf("create: %d %s", a.status, a.body)
	}
	a = call(t, c, http.MethodGet, l.URL, "")
	if a.status != http.StatusFound || a.location != "https://example.com/a?b=%2f#c" || a.major != 2 {
		t.Errorf("the link answers HTTP/%d %d to %q", a.major, a.status, a.location)
	}
	a = call(t, c, http.MethodGet, "http://"+public+"/"+l.Code+"?x=%20y", "")
	if a.status != http.StatusPermanentRedirect || a.location != "https://"+public+"/"+l.Code+"?x=%20y" {
		t.Errorf("plain HTTP answers %d to %q", a.status, a.location)
	}
	// What is not clean arrives as it was sent, and leads nowhere else.
	a = call(t, c, http.MethodGet, "https://"+public+"//example.com/%2e%2e", "")
	if a.status != http.StatusNotFound || a.location != "" {
		t.Errorf("a path that is not clean answers %d to %q", a.status, a.location)
	}
	// The budget of unknown codes is one for each address: other visitors have their own,
	// and nobody gets another by claiming one.
	status := func(c *http.Client, i int) int {
		a := call(t, c, http.MethodGet, fmt.Sprintf("https://%s/nobody%d", public, i), "",
			fmt.Sprintf("X-Forwarded-For: 198.51.100.%d", i), fmt.Sprintf("X-Real-IP: 198.51.100.%d", i), fmt.Sprintf("Forwarded: for=198.51.100.%d", i))
		return a.status
	}
	refused := 0
	for i := range 12 { // two servers have a budget each
		if status(c, i) == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < 4 {
		t.Errorf("%d of 12 unknown codes of one visitor were refused: the address is not the visitor's", refused)
	}
	if got := status(visitor(t, at, "127.0.0.3"), 0); got != http.StatusNotFound {
		t.Errorf("another visitor is answered %d", got)
	}
	if a := call(t, c, http.MethodGet, l.URL, ""); a.status != http.StatusFound {
		t.Errorf("a link that is there answers %d", a.status)
	}
}
