package deploy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// patience is how long is waited for what usually takes seconds: a machine with other work may take minutes.
const patience = 3 * time.Minute

// fleet is a running scripts/fleet.
type fleet struct {
	data, port string
	env        []string
	cmd        *exec.Cmd
	said       *bufio.Scanner
}

// newFleet has a folder and ports of its own.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	for _, program := range []string{"initdb", "pgbouncer", "redis-server", "java", "gcc", "haproxy"} {
		if out, err := exec.CommandContext(t.Context(), root+"/scripts/need", program).CombinedOutput(); err != nil {
			curttest.Need(t, strings.TrimSpace(string(out)))
		}
	}
	data := filepath.Join(os.TempDir(), "curt-fleet-"+rand.Text()) // not t.TempDir, where the user postgres may not go
	t.Cleanup(func() { _ = os.RemoveAll(data) })
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(data, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(data, "secrets", "admin_key"), curttest.Key)
	port := testkit.FreePorts(t, 61)
	return &fleet{data: data, port: port, env: append(os.Environ(), "CURT_BIN="+curttest.Binary(t), "CURT_FLEET_DATA="+data, "CURT_FLEET_PORT="+port)}
}

// start returns when the fleet is ready, and what it printed.
func (f *fleet) start(t *testing.T) (printed []string) {
	t.Helper()
	f.cmd = exec.Command("scripts/fleet")
	f.cmd.Dir, f.cmd.Env = root, f.env
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a terminal's foreground job
	var wrong bytes.Buffer
	f.cmd.Stderr = &wrong
	out, err := f.cmd.StdoutPipe()
	if err == nil {
		err = f.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.end(t) })
	for f.said = bufio.NewScanner(out); f.said.Scan(); {
		if printed = append(printed, f.said.Text()); strings.HasPrefix(f.said.Text(), "state") {
			return printed
		}
	}
	err = f.cmd.Wait()
	f.cmd = nil
	logs, _ := exec.Command("sh", "-c", "tail -n 3 "+f.data+"/log/*").CombinedOutput()
	t.Fatalf("the fleet did not start: %v\n%s%s\n%s", err, strings.Join(printed, "\n"), wrong.String(), logs)
	return nil
}

// end presses Ctrl-C, and fails if a process stays.
func (f *fleet) end(t *testing.T) {
	t.Helper()
	if f.cmd == nil {
		return
	}
	_ = syscall.Kill(-f.cmd.Process.Pid, syscall.SIGINT) // it may have ended
	for f.said.Scan() {
	}
	if err := f.cmd.Wait(); err != nil {
		t.Errorf("the fleet ended with %v", err)
	}
	f.cmd = nil
	left := f.processes(t)
	for end := time.Now().Add(patience); len(left) > 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		left = f.processes(t) // those that were killed end a moment later
	}
	if len(left) > 0 {
		t.Errorf("after Ctrl-C there are still %v", left)
	}
}

// processes returns the processes that use the folder, and their memory.
func (f *fleet) processes(t *testing.T) (lines []string) {
	t.Helper()
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range folders {
		cwd, _ := os.Readlink(p + "/cwd")
		command, _ := os.ReadFile(filepath.Join(p, "cmdline")) // empty where the process has ended
		environ, _ := os.ReadFile(filepath.Join(p, "environ"))
		if len(command) > 0 && filepath.Base(p) != strconv.Itoa(os.Getpid()) &&
			(strings.HasPrefix(cwd, f.data) || bytes.Contains(command, []byte(f.data)) || bytes.Contains(environ, []byte("="+f.data))) {
			lines = append(lines, filepath.Base(p)+" "+strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return lines
}

// megabytes is the memory of all processes: what they share counts once for each.
func (f *fleet) megabytes(t *testing.T) (rss int) {
	t.Helper()
	for _, p := range f.processes(t) {
		pid, _, _ := strings.Cut(p, " ")
		status, _ := os.ReadFile(filepath.Join("/proc", pid, "status"))
		_, rest, _ := strings.Cut(string(status), "VmRSS:")
		if fields := strings.Fields(rest); len(fields) > 0 {
			kilobytes, _ := strconv.Atoi(fields[0])
			rss += kilobytes
		}
	}
	return rss >> 10
}

// run runs scripts/fleet with arguments.
func (f *fleet) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "scripts/fleet", args...)
	c.Dir, c.Env = root, f.env
	out, err := c.Output()
	return string(out), err
}

// refusesAnother starts a second fleet on a folder, which says in one line why not.
func (f *fleet) refusesAnother(t *testing.T, data, why string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "scripts/fleet")
	c.Dir, c.Env = root, append(f.env, "CURT_FLEET_DATA="+data)
	if said, err := c.CombinedOutput(); err == nil || strings.Count(string(said), "\n") != 1 || !strings.Contains(string(said), why) {
		t.Errorf("a second fleet on %s: %v\n%s", data, err, said)
	}
}

// part is a line of curt fleet status.
type part struct {
	Part, Address, Role, Version, State string
	Wrong                               []string
}

// status returns the parts that are not ok, and the exit code.
func (f *fleet) status(t *testing.T) (all, wrong []part, code int) {
	t.Helper()
	out, err := f.run(t, "status", "--json")
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	} else if err != nil {
		code = exit.ExitCode()
	}
	for line := range strings.Lines(out) {
		var p part
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if all = append(all, p); p.State != "ok" {
			wrong = append(wrong, p)
		}
	}
	return all, wrong, code
}

// awaitClean waits until nothing is wrong.
func (f *fleet) awaitClean(t *testing.T) []part {
	t.Helper()
	for began := time.Now(); ; {
		all, wrong, code := f.status(t)
		if len(wrong) == 0 && code == 0 {
			return all
		}
		if time.Since(began) > patience {
			t.Fatalf("after %v still wrong: %+v", patience, wrong)
		}
	}
}

// request sends a request to the balancer, again while the answer is that of a busy machine: unavailable, which is no click.
func (f *fleet) request(t *testing.T, method, target, body string) curttest.Answer {
	t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		a, err := f.try(t.Context(), method, target, body)
		if err != nil {
			t.Fatalf("%s %s: %v", method, target, err)
		}
		if a.Status != http.StatusServiceUnavailable || time.Since(began) > patience {
			return a
		}
	}
}

func (f *fleet) try(ctx context.Context, method, target, body string) (curttest.Answer, error) {
	c, err := curttest.Dial(ctx, "localhost:"+f.port)
	if err != nil {
		return curttest.Answer{}, err
	}
	defer c.Close()
	return c.Do(method, target, []string{"Authorization: Bearer " + curttest.Key, "Content-Type: application/json"}, body)
}

// create creates a link.
func (f *fleet) create(t *testing.T, alias string) {
	t.Helper()
	a := f.request(t, http.MethodPost, "/api/v1/links", fmt.Sprintf(`{"long_url":"https://example.com/%[1]s","custom_alias":%[1]q}`, alias))
	if a.Status == http.StatusConflict { // created before, and answered too late
		a = f.request(t, http.MethodGet, "/api/v1/links/"+alias, "")
	}
	if a.Status != http.StatusCreated && a.Status != http.StatusOK {
		t.Fatalf("create: %d %s", a.Status, a.Body)
	}
}

func location(a curttest.Answer) string {
	value, _ := a.Get("Location")
	return value
}

// follows fails unless a link redirects.
func (f *fleet) follows(t *testing.T, alias string) {
	t.Helper()
	if a := f.request(t, http.MethodGet, "/"+alias, ""); a.Status != http.StatusFound || location(a) != "https://example.com/"+alias {
		t.Fatalf("GET /%s: %d %s", alias, a.Status, a.Body)
	}
}

// awaitClicks waits until statistics have the clicks of a link, and fails if they have more.
func (f *fleet) awaitClicks(t *testing.T, alias string, want int64) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		a := f.request(t, http.MethodGet, "/api/v1/links/"+alias+"/stats", "")
		var s curttest.Stats
		if err := json.Unmarshal(a.Body, &s); err == nil && a.Status == http.StatusOK && s.Total >= want {
			if s.Total != want {
				t.Fatalf("%d clicks of %s, want %d", s.Total, alias, want)
			}
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("after %v %d %s, want %d clicks", patience, a.Status, a.Body, want)
		}
	}
}

// TestFleet starts every part of a fleet, creates a link through the balancer, follows it, and
// reads in the status that nothing is wrong. Ctrl-C ends all processes.
func TestFleet(t *testing.T) {
	f := newFleet(t)
	printed := f.start(t)
	if len(printed) != 3 || !strings.HasPrefix(printed[0], "address") || !strings.HasSuffix(printed[0], ":"+f.port) || !strings.HasSuffix(printed[1], curttest.Key) {
		t.Errorf("it printed %q", printed)
	}
	f.create(t, "first")
	f.follows(t, "first")
	servers := map[string]int{}
	for _, p := range f.awaitClean(t) {
		if p.Part == "server" {
			servers[p.Role]++
		}
		// Sentinel promotes the replica of a primary that a busy machine holds up for a second.
		if p.Part == "redis" && (p.Address != f.at(30) && p.Address != f.at(31) || p.Role != "primary, replicas: 1") {
			t.Errorf("the status shows Redis as %+v", p)
		}
	}
	if fmt.Sprint(servers) != "map[api:2 keys:2 redirect:2 worker:2]" {
		t.Errorf("the status shows %v", servers)
	}
	f.refusesAnother(t, f.data, "another one runs")
	f.refusesAnother(t, f.data+"/other", "port "+f.port+" (balancer) is in use")
	f.awaitClicks(t, "first", 1)
	t.Logf("%s; %d MB in %d processes", printed[2], f.megabytes(t), len(f.processes(t)))
	f.end(t)
}
