package lane_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

const (
	slowClients = 15_000
	others      = 8                    // clients that are not slow
	pace        = 4 * time.Millisecond // between two requests of one of them
	window      = 4 * time.Second      // of one measurement

	// mostQuiet is the p99 without slow clients above which the bound would say nothing.
	mostQuiet = 100 * time.Millisecond
)

// TestSlowClientsDoNotSlowTheOthers has slowhttptest open 15,000 connections that send
// their heads, or read their answers, a few bytes at a time. The others' p99 stays
// within four times that of the same run without them, and 20 ms.
func TestSlowClientsDoNotSlowTheOthers(t *testing.T) {
	testkit.Faults(t)
	if !curttest.Long() {
		t.Skip("takes a minute: make soak runs it")
	}
	slow := program(t, "slowhttptest", "slowhttptest")
	raiseDescriptors(t, slowClients+1500)
	s := curttest.Start(t, curttest.Options{})
	link := s.MustCreate(t, 1)[0]
	quiet := p99(t, s, link)
	for tries := 1; quiet > mostQuiet; tries++ {
		if tries == 3 {
			t.Fatalf("p99 %s without a slow client: this machine is too busy to prove anything", quiet)
		}
		quiet = p99(t, s, link)
	}
	bound := 4*quiet + 20*time.Millisecond
	t.Logf("p99 without slow clients %s, bound %s", quiet, bound)

	// The control: a server that halts now and then must not pass.
	halted := make(chan struct{})
	go func() {
		defer close(halted)
		halt(s.PID, window, max(300*time.Millisecond, 2*bound))
	}()
	if got := p99(t, s, link); got <= bound {
		t.Errorf("p99 %s although the server halts: the test proves nothing", got)
	}
	<-halted

	for _, attack := range []struct {
		name  string
		args  []string
		least float64 // share of the slow clients that must be open at once
		gone  bool    // the sweeper ends them while we wait
	}{
		{"slow heads", []string{"-H", "-i", "5", "-x", "8"}, 0.3, true},
		{"slow readers", []string{"-X", "-w", "10", "-y", "20", "-n", "5", "-z", "1"}, 0.9, false},
	} {
		t.Run(attack.name, func(t *testing.T) {
			late, accepted := metric(t, s, "curt_lane_late_total"), metric(t, s, "curt_lane_accepted_total")
			end := assail(t, append([]string{slow, "-u", "http://" + s.Addr + "/" + link.Code}, attack.args...))
			defer end()
			await(t, s, "curt_lane_accepted_total", func(v float64) bool { return v-accepted >= slowClients*0.95 })
			before := metric(t, s, "curt_lane_connections")
			got := p99(t, s, link)
			open := metric(t, s, "curt_lane_connections")
			t.Logf("p99 %s, %.0f connections before and %.0f after", got, before, open)
			if got > bound {
				t.Errorf("p99 %s, %s without the slow clients", got, quiet)
			}
			// A head has ten seconds, and where opening so many takes as long the first
			// have gone when the last one comes.
			if before < slowClients*attack.least {
				t.Errorf("only %.0f connections were open: this proves nothing", before)
			}
			if attack.gone {
				await(t, s, "curt_lane_late_total", func(v float64) bool { return v-late >= slowClients*0.95 })
			}
			end()
			await(t, s, "curt_lane_connections", func(v float64) bool { return v < 100 })
		})
	}
	if n := metric(t, s, "curt_lane_refused_total"); n != 0 {
		t.Errorf("%v connections were refused below the cap", n)
	}
}

// assail starts the slow clients and returns what ends them. One slowhttptest opens
// its connections ever more slowly, because it polls them all for each; ten do not.
// Their priority is low: the processor that they take is no fault of the server's.
func assail(t *testing.T, command []string) (end func()) {
	t.Helper()
	const parts = 10
	var all []*exec.Cmd
	end = sync.OnceFunc(func() {
		for _, cmd := range all {
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()
		}
	})
	n := strconv.Itoa(slowClients / parts)
	for range parts {
		cmd := exec.CommandContext(t.Context(), "nice", append(append([]string{"-n", "5"}, command...), "-c", n, "-r", n, "-l", "60", "-p", "30", "-v", "0")...)
		if err := cmd.Start(); err != nil {
			end()
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	return end
}

// raiseDescriptors raises the limit for us and, because we set it, for who we start.
func raiseDescriptors(t *testing.T, least uint64) {
	t.Helper()
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		t.Fatal(err)
	}
	if r.Max < least {
		curttest.Need(t, fmt.Sprintf("a limit of %d descriptors (ulimit -Hn)", least))
	}
	r.Cur = r.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		t.Fatal(err)
	}
}

// p99 asks for the link at a steady pace and returns the 99th percentile of the times
// from when a request was due until its answer was read.
func p99(t *testing.T, s *curttest.Server, link curttest.Link) time.Duration {
	t.Helper()
	var all []time.Duration
	var mu sync.Mutex
	var clients sync.WaitGroup
	for range others {
		c := s.MustDial(t)
		clients.Go(func() {
			var took []time.Duration
			for due, end := time.Now(), time.Now().Add(window); due.Before(end); due = due.Add(pace) {
				time.Sleep(time.Until(due))
				if a, err := c.Do("GET", "/"+link.Code, nil, ""); err != nil || a.Status != 302 {
					t.Errorf("%d %v", a.Status, err)
					break
				}
				took = append(took, time.Since(due))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	clients.Wait()
	if len(all) < 100 {
		t.Fatalf("%d requests", len(all))
	}
	slices.Sort(all)
	return all[len(all)*99/100]
}

// halt stops the process for a while twice within d.
func halt(pid int, d, while time.Duration) {
	for range 2 {
		time.Sleep(max(0, d/2-while))
		_ = syscall.Kill(pid, syscall.SIGSTOP) // it may have ended
		time.Sleep(while)
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}
