package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is a ClickHouse of our own.
type server struct {
	url, http string
	process   *exec.Cmd
	hold      io.Closer // closed, the server ends
	pid       string    // of the server itself
}

func begin(ctx context.Context, root string) (*server, error) {
	folder, err := os.MkdirTemp("", "curt-bench-clickhouse-")
	if err != nil {
		return nil, err
	}
	var ports [2]string
	for i := range ports {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		_, ports[i], _ = net.SplitHostPort(l.Addr().String())
		if err := l.Close(); err != nil {
			return nil, err
		}
	}
	if err := os.Remove(folder); err != nil { // it must not be there yet
		return nil, err
	}
	s := &server{
		url: "clickhouse://127.0.0.1:" + ports[0] + "/curt", http: "http://127.0.0.1:" + ports[1] + "/",
		// Whoever interrupts us has the script's input closed, upon which it ends the server: killed, it
		// would leave it behind.
		process: exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(root, "scripts", "services"), "clickhouse", folder, ports[0], ports[1]), //nolint:gosec // our own script
	}
	var said bytes.Buffer
	s.process.Stderr = &said
	if s.hold, err = s.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if pid, ready := strings.CutPrefix(line, "ready "); ready {
		s.pid = strings.TrimSpace(pid)
		return s, nil
	}
	s.end()
	return nil, fmt.Errorf("scripts/services: %s", said.String())
}

// processor returns how long the server has computed, in steps of 10 ms; 0 where that cannot be
// known.
func (s *server) processor() time.Duration {
	const utime, stime = 14 - 3, 15 - 3 // behind the name, which may have spaces
	text, err := os.ReadFile(filepath.Join("/proc", s.pid, "stat"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int64
	for _, i := range []int{utime, stime} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// ours returns how long this process has computed.
func ours() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (s *server) end() {
	_ = s.hold.Close()
	_ = s.process.Wait() // the script ends with an error once its server is killed
}

// ask runs a statement and returns its rows as lines.
func (s *server) ask(ctx context.Context, statement string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.http, strings.NewReader(statement))
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", statement, text)
	}
	return string(text), err
}

// idle waits until nothing is merged any more.
func (s *server) idle(ctx context.Context) error {
	for {
		merging, err := s.ask(ctx, "SELECT count() FROM system.merges")
		if err != nil || strings.TrimSpace(merging) == "0" {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
