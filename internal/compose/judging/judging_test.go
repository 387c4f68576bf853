package judging

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
	"curt/internal/background"
	"curt/internal/codegen"
	"curt/internal/compose"
	"curt/internal/config"
	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/moderation"
	"curt/internal/moderation/lists"
	"curt/internal/moderation/moderationtest"
	"curt/internal/moderation/moderator"
	"curt/internal/ratelimit"
	"curt/internal/settings"
	"curt/internal/shorten/linkservice"
	"curt/internal/telemetry"
	"curt/internal/weburl"
)

// numbered is a codegen.Generator that counts.
type numbered struct{ n atomic.Int64 }

func (c *numbered) Next(context.Context, codegen.Need) (link.Code, error) {
	return link.Code(fmt.Sprintf("c%08d", c.n.Add(1))), nil
}
func (c *numbered) Guarantee() codegen.Guarantee { return codegen.Unique }
func (c *numbered) Kind() link.CodeKind          { return link.Counted }
func (c *numbered) Burned(link.Code)             {}

// judge is what a server asks about where a link is to lead.
type judge func(context.Context, time.Time, *abuse.Facts) abuse.Decision

// judging is a write path with every check that a server makes, over lists of a million
// entries and a thousand bans, and stores in memory; and its judge alone.
func judging(tb testing.TB) (*linkservice.Service, judge) {
	tb.Helper()
	var lines strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&lines, "h%d.bad-%d.example\n", i, i%1000)
	}
	path := filepath.Join(tb.TempDir(), "million.txt")
	if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
	cfg := judgingConfig([]string{path}, nil)
	read, err := settings.Read(tb.Context(), cfg, slog.New(slog.DiscardHandler), background.Inline{})
	if err != nil {
		tb.Fatal(err)
	}
	env := &compose.Env{Settings: read, Metrics: telemetry.New("test")}
	if n := env.Lists.Stats().Entries; n != 1_000_000 {
		tb.Fatalf("%d entries", n)
	}
	store, journal := linktest.NewMemory(), moderationtest.NewMemory()
	m, err := moderator.Open(tb.Context(), moderator.Config{Journal: journal, Progress: journal, Links: store, Random: rand.Reader})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range 1000 {
		e := moderation.Entity{Kind: moderation.KindDomain, Name: fmt.Sprintf("banned-%d.example", i)}
		if _, err := m.Ban(tb.Context(), time.Now(), "admin", e, link.Blocked, "a test"); err != nil {
			tb.Fatal(err)
		}
	}
	moderated, err := lists.Open(tb.Context(), lists.Config{Store: journal})
	if err != nil {
		tb.Fatal(err)
	}
	asked := newJudge(env, moderated)
	return linkservice.New(linkservice.Config{
		Store: store, Codes: &numbered{}, Limits: ratelimit.NewMemory(), Random: rand.Reader,
		Blocklists: env.Lists, Lists: moderated, Judge: asked, Moderator: m, Journal: journal,
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
	cfg := judgingConfig([]string{file("bad.txt", "evil.example\npaypal-login.example\n")}, []string{file("good.txt", "paypal-login.example\n")})
	read, err := settings.Read(t.Context(), cfg, slog.New(slog.DiscardHandler), background.Inline{})
	if err != nil {
		t.Fatal(err)
	}
	env := &compose.Env{Settings: read, Metrics: telemetry.New("test")}
	moderated, err := lists.Open(t.Context(), lists.Config{})
	if err != nil {
		t.Fatal(err)
	}
	judge := newJudge(env, moderated)
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

// judgingConfig is a configuration of a server that judges links by lists.
func judgingConfig(block, allow []string) config.Config {
	return config.Config{
		Role: []string{config.RoleAPI}, UnknownLimit: "off", ReportLimit: "off", AppealLimit: "off", Blocklists: block, Allowlists: allow,
	}
}
