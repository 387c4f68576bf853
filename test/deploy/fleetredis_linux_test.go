package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// composed are the services of compose.yaml that run Redis, each as a process of this machine: their commands are
// run as they stand there, with ports and folders of this test.
type composed struct {
	services map[string]fleetService
	ports    map[string]string
	folder   string
}

func newComposed(t *testing.T) *composed {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), root+"/scripts/need", "redis-server", "redis-cli").CombinedOutput(); err != nil {
		curttest.Need(t, strings.TrimSpace(string(out)))
	}
	c := &composed{ports: map[string]string{}, folder: t.TempDir()}
	var file struct{ Services map[string]fleetService }
	if err := yaml.Unmarshal([]byte(fill(t, fleetFiles+"/compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	c.services = file.Services
	for _, name := range []string{"redis", "redis-replica", "sentinel-1", "sentinel-2", "sentinel-3"} {
		c.ports[name] = testkit.FreePort(t)
	}
	return c
}

// start starts a service, with what its folder has from earlier.
func (c *composed) start(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	data := filepath.Join(c.folder, name)
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	here := func(text string) string {
		text = regexp.MustCompile(`\bport \d+`).ReplaceAllString(strings.ReplaceAll(text, "$$", "$"), "port "+c.ports[name])
		text = strings.ReplaceAll(text, "redis 6379", "127.0.0.1 "+c.ports["redis"])
		text = strings.ReplaceAll(text, "down-after-milliseconds curt 1000", "down-after-milliseconds curt 5000") // a busy machine stops for a second
		return strings.ReplaceAll(text, "/data", data)
	}
	service := c.services[name]
	args := make([]string, len(service.Command))
	for i, arg := range service.Command {
		args[i] = here(arg)
	}
	if len(args) != 3 {
		t.Fatalf("the command of %s is %q", name, service.Command)
	}
	run := exec.Command(args[0], args[1:]...)
	run.Env = append(os.Environ(), "NAME=127.0.0.1", "ROLE="+here(service.Environment["ROLE"]))
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Kill()
		_ = run.Wait() // it was killed
	})
	await(t, name, func() bool { return c.ask(name, "ping") == "PONG" })
	return run
}

// stop kills a service as the machine's end would.
func (c *composed) stop(t *testing.T, run *exec.Cmd) {
	t.Helper()
	if err := run.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait() // it was killed
}

// ask returns what a service answers; "" = nothing.
func (c *composed) ask(name string, args ...string) string {
	out, _ := exec.Command("redis-cli", append([]string{"-p", c.ports[name]}, args...)...).Output()
	return strings.TrimSpace(string(out))
}

// role returns master or slave; "" = it does not answer.
func (c *composed) role(name string) string {
	role, _, _ := strings.Cut(c.ask(name, "role"), "\n")
	return role
}

// primary returns the port that a Sentinel names.
func (c *composed) primary(sentinel string) string {
	_, port, _ := strings.Cut(c.ask(sentinel, "sentinel", "get-master-addr-by-name", "curt"), "\n")
	return port
}

// agree reports whether all Sentinels know each other, a primary, and its replica.
func (c *composed) agree(primary, replica string) bool {
	for _, s := range []string{"sentinel-1", "sentinel-2", "sentinel-3"} {
		state := c.ask(s, "sentinel", "master", "curt")
		if !strings.Contains(state, "num-slaves\n1") || !strings.Contains(state, "num-other-sentinels\n2") || c.primary(s) != c.ports[primary] {
			return false
		}
	}
	return c.role(primary) == "master" && strings.Contains(c.ask(replica, "info", "replication"), "master_link_status:up")
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) { // other processes
		if time.Now().After(end) {
			t.Fatalf("%v passed without %s", patience, what)
		}
	}
}

// TestRedisReturnsInItsRole: whichever server of compose.yaml was primary, one that returns after a fail-over is a
// replica of the new primary, and a primary that is started again remains one, with all Sentinels new as well.
func TestRedisReturnsInItsRole(t *testing.T) {
	testkit.Faults(t)
	c := newComposed(t)
	running := map[string]*exec.Cmd{}
	for _, name := range []string{"redis", "redis-replica", "sentinel-1", "sentinel-2", "sentinel-3"} {
		running[name] = c.start(t, name)
	}
	for was := map[string]bool{}; len(was) < 2; {
		var old, next string
		await(t, "Sentinels that know each other, a primary and its replica", func() bool {
			for _, names := range [][2]string{{"redis", "redis-replica"}, {"redis-replica", "redis"}} {
				if old, next = names[0], names[1]; c.agree(old, next) { // whichever it is: a busy machine may hold the other one up
					return true
				}
			}
			return false
		})
		was[old] = true
		c.stop(t, running[old])
		await(t, "a fail-over to "+next, func() bool { return c.role(next) == "master" && c.primary("sentinel-1") == c.ports[next] })
		running[old] = c.start(t, old)
		await(t, old+" as a replica of "+next, func() bool {
			return c.role(old) == "slave" && strings.Contains(c.ask(old, "info", "replication"), "master_port:"+c.ports[next]) &&
				strings.Contains(c.ask(next, "info", "replication"), "connected_slaves:1")
		})
		for _, name := range []string{"sentinel-1", "sentinel-2", "sentinel-3", old, next} { // all at once
			c.stop(t, running[name])
		}
		for _, name := range []string{next, old, "sentinel-1", "sentinel-2", "sentinel-3"} {
			running[name] = c.start(t, name)
			if name == next && c.role(next) != "master" {
				t.Fatalf("%s, the primary, returns as %s", next, c.role(next))
			}
		}
	}
}
