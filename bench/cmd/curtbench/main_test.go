package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"curt/bench/internal/bare"
	"curt/bench/internal/report"
)

// TestMain lets the test binary be every process of a run: the bench's own
// commands, and in the place of curt a server that answers as the baseline does.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-") {
		os.Exit(m.Run())
	}
	if os.Args[1] == "backup" {
		if err := os.Mkdir(os.Args[len(os.Args)-1], 0o750); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	if os.Args[1] != "serve" {
		os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
	}
	admin, err := (&net.ListenConfig{}).Listen(ctx, "tcp", os.Getenv("CURT_ADMIN_LISTEN"))
	if err != nil {
		os.Exit(1)
	}
	metrics := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "curt_clicks_dropped_total 0\n")
	}
	go func() {
		_ = (&http.Server{Handler: http.HandlerFunc(metrics), ReadHeaderTimeout: time.Second}).Serve(admin)
	}()
	err = bare.Run(ctx, os.Getenv("CURT_DATA"), slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	stop()
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// TestSmokeRunTakesEveryFigure runs all figures with little time against a server
// that stores nothing: everything but curt itself.
func TestSmokeRunTakesEveryFigure(t *testing.T) {
	var out, progress bytes.Buffer
	folder := t.TempDir()
	code := run(t.Context(), []string{
		"figures", "-curt", os.Args[0], "-temp", t.TempDir(), "-out", folder, "-links", "5000", "-rounds", "1",
		"-clicks", "20000", "-warmup", "20ms", "-measure", "100ms", "-settle", "20ms",
	}, &out, &progress)
	if code != 0 {
		t.Fatalf("code %d:\n%s", code, progress.String())
	}
	for _, want := range []string{
		"| durable creates, 64 connections, empty store | ≥ 10,000 /s |", "| durable creates, one core, 32 clients, empty store | ≥ 7,000 /s |",
		"| durable creates, 64 connections, 5000 links | ≥ 5,000 /s |", "while 1000 clicks/s arrive, 5000 links",
		"| cold redirect p99, 5000 links, idle (200/s) | ≤ 2.00 ms |", "under 2000 creates/s, 5000 clicks/s | ≤ 5.00 ms |",
		"| CPU per click, Ring to stored roll-up, 20000 clicks, Zipf(1.0) over 100000 links | ≤ 6.00 µs |",
		"| clicks folded on one core, raw clicks kept | ≥ 100,000 /s |",
		"| cold redirects (200/s) p99 while 5000 links are backed up |  |",
		"| start-up, empty store | ≤ 300 ms |", "| start-up, 5000 links | ≤ 1,000 ms |", "| resident memory idle, empty store | ≤ 40.0 MB |",
		"; one fsync each ", "- machine: ", "- data on: ", "- Go: go1", "- commit: ", "- disturbance: ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q", want)
		}
	}
	if strings.Contains(out.String(), "broken") || strings.Contains(out.String(), "| – | – |") {
		t.Error("a figure is broken or missing")
	}
	if t.Failed() {
		t.Logf("%s\n%s", out.String(), progress.String())
	}
	files, err := filepath.Glob(filepath.Join(folder, "20*.md"))
	if err != nil || len(files) != 1 {
		t.Fatalf("written: %v, %v", files, err)
	}
	written, err := os.ReadFile(files[0])
	if err != nil || !bytes.Equal(written, out.Bytes()) {
		t.Errorf("the file differs from what was printed: %v", err)
	}
}

func TestWrongUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "usage"},
		{[]string{"nonsense"}, 2, "usage"},
		{[]string{"figures", "-rounds", "0"}, 1, "at least one round"},
		{[]string{"figures", "-only", "clicks,speed", "-temp", t.TempDir()}, 1, `no figure is called "speed"`},
		{[]string{"figures", "more"}, 1, "unexpected argument"},
		{[]string{"figures", "-curt", "/nonexistent", "-only", "creates", "-temp", t.TempDir(), "-quick"}, 1, "/nonexistent"},
	} {
		var progress bytes.Buffer
		if code := run(t.Context(), c.args, &bytes.Buffer{}, &progress); code != c.code || !strings.Contains(progress.String(), c.want) {
			t.Errorf("%v: code %d, %q; want %d, %q", c.args, code, progress.String(), c.code, c.want)
		}
	}
}

func TestBrokenFigureFailsTheRunAndMissedBarDoesNot(t *testing.T) {
	missed := report.Row{Figure: "slow", Unit: report.PerSecond, Bar: report.Bar{AtLeast: 10}, Values: []float64{1}}
	broken := missed
	broken.Broken = "status 500"
	var out bytes.Buffer
	if err := publish(report.Report{Rows: []report.Row{missed}}, settings{}, &out, &out); err != nil {
		t.Errorf("missed bar: %v", err)
	}
	if err := publish(report.Report{Rows: []report.Row{missed, broken}}, settings{}, &out, &out); err == nil {
		t.Error("a broken figure went unnoticed")
	}
}
