package curttest

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"curt/internal/testkit"
)

// Key is the admin key of every server that Start starts.
const Key = "curt_test_0123456789abcdefghijklmnop"

// Bounds of waiting, generous because two busy cores run everything at once.
const (
	startBound = 3 * time.Minute
	stopBound  = 3 * time.Minute
)

// Options says how a server is started. The zero Options start the embedded
// default on an empty folder.
type Options struct {
	Data   string   // data folder; "" = a new one that the test removes
	Env    []string // further settings, as CURT_X=value
	Args   []string // behind curt serve
	Binary string   // the program, of another version; "" = that under test
	Wrap   []string // a command in front of the binary that keeps its process id, as strace -D

	// Hopeless reports that a server that says it is not ready will never be; nil = none is.
	Hopeless func() bool
}

// Server is one running curt.
type Server struct {
	Addr  string // host:port of the main listener; "" = a worker, keys or a writer
	Admin string // host:port of the admin listener
	Data  string
	PID   int

	cmd  *exec.Cmd
	log  *output
	done chan struct{} // closed when the process has ended
}

// Start starts curt and returns once it is ready. A server that does not get there
// fails the test. What still runs when the test ends is killed, and a failed test
// shows its log. A server that ends because a store is unavailable is started again,
// as a supervisor does, for three minutes: a busy machine's store may respond late.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		s, err := Launch(t, o)
		if err == nil {
			return s
		}
		if s == nil || !s.ended() || s.ExitCode() != unavailable || time.Now().After(end) {
			t.Fatalf("start curt: %v", err)
		}
	}
}

// ended reports whether the process has.
func (s *Server) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// Launch is Start for servers that may fail to: the error then says how the
// process ended, with its output.
func Launch(t testing.TB, o Options) (*Server, error) {
	t.Helper()
	if o.Data == "" {
		o.Data = t.TempDir()
	}
	for try := 1; ; try++ {
		s, err := launch(t, o)
		// The admin listener's port was free when we looked; rarely somebody else
		// has taken it since.
		if err == nil || s == nil || try == 3 || !strings.Contains(s.Log(), "address already in use") {
			return s, err
		}
	}
}

func launch(t testing.TB, o Options) (*Server, error) {
	t.Helper()
	admin := FreeAddr(t)
	args := slices.Concat(o.Wrap, []string{cmp.Or(o.Binary, Binary(t)), "serve"}, o.Args)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), args[0], args[1:]...) //nolint:gosec // the command is the test's
	cmd.Env = append(append(plainEnv(), "CURT_LISTEN=127.0.0.1:0", "CURT_ADMIN_LISTEN="+admin,
		"CURT_DATA="+o.Data, "CURT_ADMIN_KEY="+Key), o.Env...)
	cmd.WaitDelay = time.Minute // a tracer may hold the pipes longer than curt lives, and who reads them may be slow
	tie(cmd)
	s := &Server{Admin: admin, Data: o.Data, cmd: cmd, log: newOutput(), done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = s.log, s.log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("run %s: %w", args[0], err)
	}
	s.PID = cmd.Process.Pid
	go s.wait()
	t.Cleanup(func() {
		s.Kill()
		removePage(o.Data)
		if t.Failed() {
			t.Logf("log of curt (pid %d):\n%s", s.PID, s.Log())
		}
	})
	return s, s.awaitReady(t.Context(), o.Hopeless)
}

// removePage removes what a killed server left in memory for its next start, which does not come.
func removePage(data string) {
	b, _ := os.ReadFile(filepath.Join(data, "clicks.life"))
	_, page, _ := strings.Cut(string(b), `"page":"`)
	if page, _, found := strings.Cut(page, `"`); found {
		_ = os.Remove(page) //nolint:gosec // our own server wrote it
	}
}

// FreeAddr returns a loopback address that nobody listens on, or fails the test.
func FreeAddr(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", testkit.FreePort(t))
}

// wait reaps the process. Its exit code is read from cmd.ProcessState.
func (s *Server) wait() {
	_ = s.cmd.Wait() // a code other than 0 is what several tests are about
	close(s.done)
}

// plainEnv is the environment without anybody's own settings of curt.
func plainEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "CURT_") {
			env = append(env, kv)
		}
	}
	return env
}

// awaitReady waits for the log line that names the address, then for /readyz.
func (s *Server) awaitReady(ctx context.Context, hopeless func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	ready := s.Admin
	if !slices.Contains(s.cmd.Env, "CURT_ROLE=worker") && !slices.Contains(s.cmd.Env, "CURT_ROLE=keys") && !slices.Contains(s.cmd.Env, "CURT_ROLE=writer") { // which have no other
		select {
		case <-s.log.listening:
			s.Addr = s.log.address()
		case <-s.done:
			return fmt.Errorf("ended with code %d before it listened:\n%s", s.ExitCode(), s.Log())
		case <-ctx.Done():
			return fmt.Errorf("did not listen within %s:\n%s", startBound, s.Log())
		}
		if !strings.Contains(strings.Join(s.cmd.Env, " "), " CURT_TLS_CERT=") { // the admin's never speaks TLS
			ready = s.Addr
		}
	}
	for {
		status, err := Probe(ctx, ready, "/readyz")
		switch {
		case err == nil && status == http.StatusOK:
			return nil
		case err == nil && status == http.StatusServiceUnavailable && hopeless != nil && hopeless():
			return fmt.Errorf("will not be ready:\n%s", s.Log())
		}
		select {
		case <-s.done:
			return fmt.Errorf("ended with code %d before it was ready:\n%s", s.ExitCode(), s.Log())
		case <-ctx.Done():
			return fmt.Errorf("was not ready within %s:\n%s", startBound, s.Log())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Probe asks for a path on a connection of its own and returns the status.
func Probe(ctx context.Context, addr, path string) (int, error) {
	c, err := Dial(ctx, addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	a, err := c.Do("GET", path, nil, "")
	return a.Status, err
}

// Kill ends the process at once, as a crash would, and waits until it is gone.
// Killing what has ended is allowed.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // already ended is what we want
	<-s.done
}

// Terminate sends SIGTERM and returns the exit code and how long the end took.
func (s *Server) Terminate(t testing.TB) (code int, took time.Duration) {
	t.Helper()
	begin := time.Now()
	s.Signal(t)
	return s.Wait(t), time.Since(begin)
}

// Signal sends SIGTERM and does not wait.
func (s *Server) Signal(t testing.TB) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatalf("SIGTERM to %d: %v", s.PID, err)
	}
}

// Wait waits for the process to end by itself and returns its exit code.
func (s *Server) Wait(t testing.TB) int {
	t.Helper()
	select {
	case <-s.done:
		return s.ExitCode()
	case <-time.After(stopBound):
		t.Fatalf("curt (pid %d) did not end within %s", s.PID, stopBound)
		return -1
	}
}

// Done is closed when the process has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// ExitCode returns the code of an ended process; -1 = ended by a signal.
func (s *Server) ExitCode() int { return s.cmd.ProcessState.ExitCode() }

// Log returns what the process has printed so far.
func (s *Server) Log() string { return s.log.String() }

// output collects what a process prints and notices the line that names its
// address.
type output struct {
	listening chan struct{} // closed when the address is known

	mu   sync.Mutex
	text []byte // guarded by mu
	seen int    // bytes of text whose lines were read; guarded by mu
	addr string // guarded by mu
}

func newOutput() *output { return &output{listening: make(chan struct{})} }

// listenLine finds the address in the log line "listening", in slog's text or JSON
// form.
var listenLine = regexp.MustCompile(`"?listening"?.*\baddr"?[=:]\s*"?(127\.0\.0\.1:\d+)`)

// Write takes output of the process; lines may arrive in pieces.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	for o.addr == "" {
		line, _, found := strings.Cut(string(o.text[o.seen:]), "\n")
		if !found {
			break
		}
		o.seen += len(line) + 1
		if m := listenLine.FindStringSubmatch(line); m != nil {
			o.addr = m[1]
			close(o.listening)
		}
	}
	return len(p), nil
}

func (o *output) address() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.addr
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

// Metric returns a metric's value from the admin listener, summed over its labels;
// found is false when there is no such metric.
func (s *Server) Metric(ctx context.Context, name string) (value float64, found bool, err error) {
	c, err := Dial(ctx, s.Admin)
	if err != nil {
		return 0, false, err
	}
	defer c.Close()
	a, err := c.Do("GET", "/metrics", nil, "")
	if err != nil || a.Status != http.StatusOK {
		return 0, false, errors.Join(err, fmt.Errorf("/metrics answered %d", a.Status))
	}
	lines := bufio.NewScanner(strings.NewReader(string(a.Body)))
	for lines.Scan() {
		head, number, _ := strings.Cut(lines.Text(), " ")
		if base, _, _ := strings.Cut(head, "{"); base != name {
			continue
		}
		var v float64
		if _, err := fmt.Fscan(io.Reader(strings.NewReader(number)), &v); err != nil {
			return 0, false, fmt.Errorf("metric %s: %w", name, err)
		}
		value, found = value+v, true
	}
	return value, found, lines.Err()
}
