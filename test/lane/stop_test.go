package lane_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// TestAStopResetsNobody: clients that connect anew for each request, until nobody
// listens any more, get an answer or are refused by the kernel. A reset is possible only
// between the last look at the queue and the close, some microseconds: two in a stop are
// let pass, of 32 that there were without a look.
func TestAStopResetsNobody(t *testing.T) {
	for _, mode := range []string{"on", "off"} {
		t.Run("CURT_LANE="+mode, func(t *testing.T) {
			// Whoever comes while a machine that has other work lets the last step wait is reset by
			// the kernel: of some stops one must do better.
			fewest := int64(math.MaxInt64)
			for end := time.Now().Add(3 * time.Minute); fewest > 2 && time.Now().Before(end); {
				fewest = min(fewest, resets(t, mode))
			}
			if fewest > 2 {
				t.Errorf("%d requests were reset", fewest)
			}
		})
	}
}

// resets stops a server to which many come and returns how many were reset.
func resets(t *testing.T, mode string) int64 {
	t.Helper()
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_LANE=" + mode}})
	var visitors sync.WaitGroup
	var answered, reset atomic.Int64
	for i := range 32 {
		visitors.Go(func() {
			path := []string{"/nothing", "/healthz"}[i%2]
			for {
				_, err := curttest.Probe(t.Context(), s.Addr, path)
				switch {
				case err == nil:
					answered.Add(1)
				case errors.Is(err, syscall.ECONNREFUSED):
					return
				default:
					t.Logf("client %d: %v", i, err)
					reset.Add(1)
				}
			}
		})
	}
	for answered.Load() < 500 {
		time.Sleep(time.Millisecond)
	}
	if code, took := s.Terminate(t); code != 0 {
		t.Errorf("exit code %d after %s", code, took)
	}
	visitors.Wait()
	t.Logf("%d answered, %d reset", answered.Load(), reset.Load())
	return reset.Load()
}

// TestAStopDuringStartIsNoFailure stops the server at moments of its start. Before the
// process has asked for the signal it is ended by it, which is not ours to change.
func TestAStopDuringStartIsNoFailure(t *testing.T) {
	for after := time.Duration(0); after < 150*time.Millisecond; after += 5 * time.Millisecond {
		cmd := exec.CommandContext(t.Context(), curttest.Binary(t), "serve")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "CURT_LISTEN=127.0.0.1:0", "CURT_ADMIN_LISTEN=", "CURT_DATA=" + t.TempDir()}
		var out output
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after) // the moment is the test
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code > 0 {
			t.Error(fmt.Sprintf("SIGTERM after %s: exit code %d\n", after, code), out.String())
		}
	}
}
