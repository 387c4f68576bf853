package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"curt/internal/abuse"
	"curt/internal/codegen"
	"curt/internal/config"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
	"curt/internal/ratelimit"
	"curt/internal/shorten"
	"curt/internal/telemetry"
	"curt/internal/weburl"
)

// numbered is a codegen.Generator that counts.
type numbered struct{ n atomic.Int64 }

func (c *numbered) Next(context.Context, codegen.Need) (link.Code, error) {
	return link.Code(fmt.Sprintf("c%08d", c.n.Add(1))), nil
}
func (c *numbered) Promise() codegen.Promise { return codegen.Unique }
func (c *numbered) Kind() link.CodeKind      { return link.Counted }
func (c *numbered) Burned(link.Code)         {}

// judge is what a server asks about where a link is to lead.
type judge func(context.Context, time.Time, *abuse.Facts) abuse.Decision

// judging is a write path with every check that a server makes, over lists of a million
// entries and a thousand bans, and stores in memory; and its judge alone.
func judging(tb testing.TB) (*shorten.Services, judge) {
	tb.Helper()
	var lines strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&lines, "h%d.bad-%d.example\n", i, i%1000)
	}
	path := filepath.Join(tb.TempDir(), "million.txt")
	if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
	cfg := config.Config{Blocklists: []string{path}}
	s := &Server{config: cfg, metrics: telemetry.New("test"), processors: newProcessors()}
	var err error
	if s.ready.blocked, err = blocklists(tb.Context(), cfg, slog.New(slog.DiscardHandler), s.processors.work); err != nil {
		tb.Fatal(err)
	}
	if n := s.ready.blocked.Stats().Entries; n != 1_000_000 {
		tb.Fatalf("%d entries", n)
	}
	if s.ready.policy, err = policy(cfg); err != nil {
		tb.Fatal(err)
	}
	if s.ready.signals, err = signals(cfg); err != nil {
		tb.Fatal(err)
	}
	store, journal := linktest.NewMemory(), moderationtest.NewMemory()
	m, err := moderation.Open(tb.Context(), moderation.Config{Journal: journal, Progress: journal, Links: store, Random: rand.Reader})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range 1000 {
		e := moderation.Entity{Kind: moderation.KindDomain, Name: fmt.Sprintf("banned-%d.example", i)}
		if _, err := m.Ban(tb.Context(), time.Now(), "admin", e, link.Blocked, "a test"); err != nil {
			tb.Fatal(err)
		}
	}
	asked := s.newJudge()
	return shorten.New(shorten.Config{
		Store: store, Codes: &numbered{}, Limits: ratelimit.NewMemory(), Own: new(weburl.Hosts), Random: rand.Reader,
		Host: "curt.test", Blocklists: s.ready.blocked, Judge: asked, Moderator: m, Journal: journal,
	}), asked
}

// TestAnAllowListOverrulesAll: what an operator calls good is no look-alike, and no list
// of others forbids it.
func TestAnAllowListOverrulesAll(t *testing.T) {
	file := func(name, lines string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cfg := config.Config{
		Blocklists: []string{file("bad.txt", "evil.example\npaypal-login.example\n")},
		Allowlists: []string{file("good.txt", "paypal-login.example\n")},
	}
	s := &Server{config: cfg, metrics: telemetry.New("test"), processors: newProcessors()}
	var err error
	if s.ready.blocked, err = blocklists(t.Context(), cfg, slog.New(slog.DiscardHandler), s.processors.work); err != nil {
		t.Fatal(err)
	}
	if s.ready.policy, err = policy(cfg); err != nil {
		t.Fatal(err)
	}
	if s.ready.signals, err = signals(cfg); err != nil {
		t.Fatal(err)
	}
	judge := s.newJudge()
	for url, want := range map[string]link.Safety{
		"https://evil.example/":              link.Blocked,
		"https://paypal-login.example/login": link.Clean,
		"https://paypa1-login.example/login": link.Quarantined,
	} {
		u, err := weburl.Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		if got := judge(t.Context(), time.Now(), &abuse.Facts{URL: u}); got.Safety != want {
			t.Errorf("%s: %s, score %d, %+v", url, got.Safety, got.Score, got.Findings)
		}
	}
}
