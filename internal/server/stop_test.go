package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"curt/internal/backend/sqlite/counts"
	"curt/internal/clicks/clicklog"
	"curt/internal/config"
)

// onLine calls f when a line is logged that holds a text.
type onLine struct {
	io.Writer

	text string
	f    func()
}

func (o *onLine) Write(b []byte) (int, error) {
	if strings.Contains(string(b), o.text) {
		o.f()
	}
	return o.Writer.Write(b)
}

// TestTheLastClicksAreCounted has a click come while the server drains, and looks at what the
// stopped server leaves: the click is in the log, and all of the log is counted.
func TestTheLastClicksAreCounted(t *testing.T) {
	var cfg config.Config
	p, err := kong.New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	if _, err := p.Parse([]string{"--data", data, "--listen", "127.0.0.1:0", "--admin-listen", "", "--fold-interval", "1h"}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var s *Server
	s, err = New(ctx, cfg, Options{Version: "test", Log: slog.New(slog.NewTextHandler(&onLine{t.Output(), "msg=draining", func() {
		follow(t, "http://"+s.Addr().String(), filepath.Join(data, "admin.key"))
	}}, nil))})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	log, err := clicklog.Open(clicklog.Config{Dir: filepath.Join(data, "clicks")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	r := log.Read(clicklog.Position{})
	defer r.Close()
	block, err := r.Next()
	if err != nil || block.Count != 1 || block.Next != log.End() {
		t.Fatalf("the log has %d clicks, up to %v of %v, %v; want the one", block.Count, block.Next, log.End(), err)
	}
	counts, err := counts.Open(t.Context(), counts.Config{Path: filepath.Join(data, "clicks.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = counts.Close() }()
	if state, err := counts.Load(t.Context()); err != nil || state.Position != log.End() {
		t.Errorf("counted up to %v of %v, %v", state.Position, log.End(), err)
	}
}

// follow makes a link and follows it.
func follow(t *testing.T, base, keyFile string) {
	t.Helper()
	key, err := os.ReadFile(keyFile)
	if err != nil {
		t.Error(err)
		return
	}
	ask := func(method, path, body string, want int) {
		r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.Body.Close() != nil || res.StatusCode != want {
			t.Errorf("%s %s: %s, %v; want %d", method, path, res.Status, err, want)
		}
	}
	ask(http.MethodPost, "/api/v1/links", `{"long_url": "https://example.com/", "custom_alias": "abc"}`, http.StatusCreated)
	ask(http.MethodGet, "/abc", "", http.StatusFound)
}
