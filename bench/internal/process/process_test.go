package process_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"curt/bench/internal/process"
)

// script starts a shell that plays a server, and returns it.
func script(t *testing.T, text string, core int) (*process.Server, error) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	s, err := process.Start(ctx, process.Command{Path: sh, Args: []string{"-c", text}, Env: os.Environ(), Core: core})
	if err == nil {
		t.Cleanup(func() { _ = s.Kill() })
	}
	return s, err
}

const announce = `echo '{"msg":"listening","listener":"admin","addr":"127.0.0.1:7"}' >&2
echo 'no JSON at all' >&2
echo '{"msg":"listening","addr":"127.0.0.1:8"}' >&2
`

func TestStartFindsTheMainListenerAndStopEndsIt(t *testing.T) {
	s, err := script(t, announce+"trap 'exit 0' TERM; while :; do sleep 0.01; done", -1)
	if err != nil {
		t.Fatal(err)
	}
	if s.Addr.String() != "127.0.0.1:8" || s.Startup <= 0 {
		t.Errorf("address %s, start-up %s", s.Addr, s.Startup)
	}
	if rss, err := process.RSS(s.PID); err != nil || rss < 100<<10 {
		t.Errorf("resident memory %d, %v", rss, err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if err := s.Stop(); err == nil {
		t.Error("a server that has ended was stopped again")
	}
}

func TestServerThatEndsEarlyIsAnErrorWithItsLog(t *testing.T) {
	if _, err := script(t, "echo 'cannot open data' >&2; exit 1", -1); err == nil || !strings.Contains(err.Error(), "cannot open data") {
		t.Errorf("error %v", err)
	}
	s, err := script(t, announce+"exec sleep 60", -1)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Kill()
	if err := s.Stop(); err == nil || !strings.Contains(err.Error(), "ended by itself") {
		t.Errorf("error %v", err)
	}
}

// cores returns the set of cores that a process may use.
func cores(t *testing.T, pid int) unix.CPUSet {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		t.Fatal(err)
	}
	return set
}

func TestServerAndGeneratorArePinned(t *testing.T) {
	before := cores(t, 0)
	core := 0
	for !before.IsSet(core) {
		core++
	}
	s, err := script(t, announce+"exec sleep 60", core)
	if err != nil {
		t.Fatal(err)
	}
	if set := cores(t, s.PID); set.Count() != 1 || !set.IsSet(core) {
		t.Errorf("server runs on %d cores", set.Count())
	}
	undo, err := process.PinSelf(core)
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if set := cores(t, 0); set.Count() != 1 {
		t.Errorf("the generator runs on %d cores", set.Count())
	}
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	if cores(t, 0) != before {
		t.Error("the affinity was not restored")
	}
}

func TestCPUTimeGrowsWithWork(t *testing.T) {
	before, err := process.CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	// On a busy machine this process may have to wait for its turn.
	for begin := time.Now(); time.Since(begin) < time.Minute; {
		after, err := process.CPU(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if after > before {
			return
		}
	}
	t.Errorf("CPU time stands at %s", before)
}

func TestProcFormats(t *testing.T) {
	stat := "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1 0 100 200 300"
	if got, err := process.ParseStat(stat); err != nil || got != 3*time.Second {
		t.Errorf("CPU time = %s, %v, want 3 s", got, err)
	}
	for _, bad := range []string{"", "42 (a) S 1 2", "42 (a) S 1 2 3 4 5 6 7 8 9 10 x 50 0"} {
		if _, err := process.ParseStat(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	if got, err := process.ParseKiB("VmHWM:\t 9 kB\nVmRSS:\t    1234 kB\n", "VmRSS:"); err != nil || got != 1234<<10 {
		t.Errorf("VmRSS = %d, %v", got, err)
	}
	if _, err := process.ParseKiB("VmHWM: 9 kB\n", "VmRSS:"); err == nil {
		t.Error("a missing line was read")
	}
	clocks, err := process.ParseClocks("cpu  100 200 300 99999 88888 400 500 600 0 0\ncpu0 1 2\n")
	if want := (process.Clocks{Busy: 15 * time.Second, Steal: 6 * time.Second}); err != nil || clocks != want {
		t.Errorf("clocks = %+v, %v, want %+v", clocks, err, want)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "cpu 1 2 3 4 5 6 7 x"} {
		if _, err := process.ParseClocks(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	mounts := "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmpo xfs ro 0 0\n"
	for path, want := range map[string]string{
		"/tmp/x": "tmpfs on tmpfs (rw)", "/tmpo": "xfs on /dev/b (ro)", "/tmpox": "ext4 on /dev/a (rw)",
	} {
		if got := process.Mounted(mounts, path); got != want {
			t.Errorf("%s lies on %s, want %s", path, got, want)
		}
	}
}

func TestDescribeNamesTheMachine(t *testing.T) {
	m, err := process.Describe(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if m.Cores < 1 || m.Memory < 1<<20 || m.Kernel == "" || m.Filesystem == "unknown" || !strings.HasPrefix(m.Go, "go1") {
		t.Errorf("%+v", m)
	}
	c, err := process.Machinewide()
	if err != nil || c.Busy <= 0 {
		t.Errorf("machine's clocks %+v, %v", c, err)
	}
	if own, err := process.Own(); err != nil || own <= 0 || own > c.Busy {
		t.Errorf("own CPU time %s of %s, %v", own, c.Busy, err)
	}
}
