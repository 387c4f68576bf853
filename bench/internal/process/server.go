package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startBound = 60 * time.Second
	stopBound  = 60 * time.Second

	// probePause is the time between two questions whether a server is ready: what
	// a start-up time is too long by at most.
	probePause = time.Millisecond
)

// Command is a server to start.
type Command struct {
	Path string
	Args []string
	Env  []string // whole: nothing is inherited
	Core int      // the only core it may use; -1 = any

	// Ready is the path that answers 200 once the server is ready; "" = once it
	// listens.
	Ready string
}

// Server is a running process. It logs JSON lines to its standard error, one of
// them with the message "listening" and the attribute addr.
type Server struct {
	Addr    netip.AddrPort
	PID     int
	Startup time.Duration // from exec to ready

	cmd   *exec.Cmd
	ended chan struct{} // closed once the process is reaped

	mu   sync.Mutex
	tail []string // the last lines it printed; guarded by mu

	Admin string // where its metrics are; set by who started it and knows
}

// Start starts a server and returns once it is ready. The caller stops it.
func Start(ctx context.Context, c Command) (*Server, error) {
	// The process outlives ctx, so that Stop can end it in order.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), c.Path, c.Args...) //nolint:gosec // what is measured
	cmd.Env = c.Env
	// Whatever happens to the bench, no server is left behind. The signal comes when
	// the thread that forked ends, so no goroutine of the bench may end locked to one.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	begin := time.Now()
	if err := startOn(cmd, c.Core); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	s := &Server{PID: cmd.Process.Pid, cmd: cmd, ended: make(chan struct{})}
	addr := make(chan netip.AddrPort, 1)
	go s.follow(out, addr)
	if err := s.await(ctx, addr, c.Ready); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", c.Path, err), s.Kill())
	}
	s.Startup = time.Since(begin)
	return s, nil
}

// follow reads the log to its end, then reaps the process.
func (s *Server) follow(out io.Reader, addr chan<- netip.AddrPort) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		s.mu.Lock()
		s.tail = append(s.tail[max(0, len(s.tail)-19):], lines.Text())
		s.mu.Unlock()
		if a, ok := listening(lines.Bytes()); ok {
			select {
			case addr <- a:
			default: // announced before
			}
		}
	}
	_ = s.cmd.Wait() // how it ended is seen in the log
	close(s.ended)
}

// listening reads the line that announces the main listener.
func listening(line []byte) (netip.AddrPort, bool) {
	var l struct{ Msg, Addr, Listener string }
	if json.Unmarshal(line, &l) != nil || !strings.HasPrefix(l.Msg, "listening") || l.Listener == "admin" {
		return netip.AddrPort{}, false
	}
	a, err := netip.ParseAddrPort(l.Addr)
	return a, err == nil
}

// await waits for the address, then for the path to answer 200.
func (s *Server) await(ctx context.Context, addr <-chan netip.AddrPort, ready string) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	select {
	case s.Addr = <-addr:
	case <-s.ended:
		return fmt.Errorf("it ended:\n%s", s.Log())
	case <-ctx.Done():
		return fmt.Errorf("it does not listen: %w\n%s", context.Cause(ctx), s.Log())
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for ready != "" && !s.ok(ctx, client, ready) {
		select {
		case <-s.ended:
			return fmt.Errorf("it ended:\n%s", s.Log())
		case <-ctx.Done():
			return fmt.Errorf("it is not ready: %w\n%s", context.Cause(ctx), s.Log())
		case <-time.After(probePause):
		}
	}
	return nil
}

func (s *Server) ok(ctx context.Context, client *http.Client, path string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr.String()+path, http.NoBody)
	if err != nil {
		return false
	}
	res, err := client.Do(req)
	if err != nil {
		return false
	}
	_ = res.Body.Close() // the status is all that counts
	return res.StatusCode == http.StatusOK
}

// Log returns the last lines that the server printed.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.tail, "\n")
}

// Stop ends the server by SIGTERM and waits until it is gone. A server that does
// not end, or that had ended by itself, is an error.
func (s *Server) Stop() error {
	select {
	case <-s.ended:
		return fmt.Errorf("%s had ended by itself:\n%s", s.cmd.Path, s.Log())
	default:
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", s.cmd.Path, err)
	}
	select {
	case <-s.ended:
		return nil
	case <-time.After(stopBound):
		return errors.Join(fmt.Errorf("%s did not end in %s:\n%s", s.cmd.Path, stopBound, s.Log()), s.Kill())
	}
}

// Kill ends the server at once and waits until it is gone.
func (s *Server) Kill() error {
	_ = s.cmd.Process.Kill() // already ended is what we want
	<-s.ended
	return nil
}
