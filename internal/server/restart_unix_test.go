//go:build unix

package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"curt/internal/config"
	"curt/internal/server"
)

// helperData names the data folder to the test binary that serves as a server.
const helperData = "CURT_TEST_SERVE"

// TestServe is no test: it is the server that TestRestartsFailNoRequest starts.
func TestServe(t *testing.T) {
	data := os.Getenv(helperData)
	if data == "" {
		return
	}
	var cfg config.Config
	p, err := kong.New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Parse([]string{"--data", data, "--admin-listen", ""}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := server.New(ctx, cfg, server.Options{Version: "test", Log: slog.New(slog.NewJSONHandler(os.Stderr, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// serveOn starts the server with the listener as a supervisor would, and returns once
// it serves.
func serveOn(t *testing.T, listener *os.File, data string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// LISTEN_PID must be the server's own, which only it knows: hence the shell.
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" -test.run '^TestServe$'`, self)
	cmd.Env = append(os.Environ(), helperData+"="+data)
	cmd.ExtraFiles = []*os.File{listener}
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(lines.Text(), `"listening"`) {
				close(ready)
			}
		}
	}()
	select {
	case <-ready:
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		t.Fatal("the server does not start")
	}
	return cmd
}

// visitor asks without a pause, over connections that it keeps as long as it is let,
// and retries nothing.
func visitor(addr string, done *atomic.Bool, answered *atomic.Int64, path string) error {
	for !done.Load() {
		nc, err := (&net.Dialer{Timeout: time.Minute}).DialContext(context.Background(), "tcp", addr)
		if err != nil {
			return err
		}
		in := bufio.NewReader(nc)
		for leave := false; !leave && !done.Load(); {
			_ = nc.SetDeadline(time.Now().Add(time.Minute))
			if _, err := fmt.Fprintf(nc, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
				return err
			}
			r, err := http.ReadResponse(in, nil)
			if err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return err
			}
			_ = r.Body.Close()
			answered.Add(1)
			leave = r.Close
		}
		_ = nc.Close()
	}
	return nil
}

// TestRestartsFailNoRequest restarts the server twenty times on an inherited listener,
// under load of hits, misses and requests at net/http.
func TestRestartsFailNoRequest(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		t.Fatal(l)
	}
	file, err := tcp.File()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	data := t.TempDir()
	cmd := serveOn(t, file, data)
	var done atomic.Bool
	var visitors sync.WaitGroup
	var total atomic.Int64
	for i := range 8 {
		visitors.Go(func() {
			if err := visitor(l.Addr().String(), &done, &total, []string{"/nothing", "/healthz"}[i%2]); err != nil {
				t.Errorf("a request failed: %v", err)
			}
		})
	}
	const restarts = 20
	for range restarts {
		for seen := total.Load(); total.Load() < seen+500 && !t.Failed(); {
			runtime.Gosched() // the visitors are at full speed
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		cmd = serveOn(t, file, data)
	}
	done.Store(true)
	visitors.Wait()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
