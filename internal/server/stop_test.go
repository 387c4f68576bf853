package server

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"curt/internal/backend/sqlite"
	"curt/internal/clicks"
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
		s.clicks.ring.Record(&clicks.Raw{
			Time: time.Now().UnixMilli(), Code: []byte("abc"), Outcome: clicks.Redirected, Addr: netip.MustParseAddr("203.0.113.9"),
		})
	}}, nil))})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	log, err := clicks.OpenLog(clicks.LogConfig{Dir: filepath.Join(data, "clicks")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	r := log.Read(clicks.Position{})
	defer r.Close()
	block, err := r.Next()
	if err != nil || block.Count != 1 || block.Next != log.End() {
		t.Fatalf("the log has %d clicks, up to %v of %v, %v; want the one", block.Count, block.Next, log.End(), err)
	}
	counts, err := sqlite.OpenRollups(t.Context(), sqlite.RollupsConfig{Path: filepath.Join(data, "clicks.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = counts.Close() }()
	if state, err := counts.Load(t.Context()); err != nil || state.Position != log.End() {
		t.Errorf("counted up to %v of %v, %v", state.Position, log.End(), err)
	}
}
