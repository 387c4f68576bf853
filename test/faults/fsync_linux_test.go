package faults_test

import (
	"fmt"
	"strconv"
	"testing"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// TestFailedFsyncIsNeverAcknowledged fails the n-th fsync of each thread, for n =
// 1, 2, 3 … until none fires, under creates. What was acknowledged is there after
// the restart, and once a commit of the link store could not be synced, nothing
// more is acknowledged: after a failed fsync the kernel has forgotten which pages
// are dirty, and the next one answers 0 for pages that never reached the disk.
func TestFailedFsyncIsNeverAcknowledged(t *testing.T) {
	testkit.Faults(t)
	curttest.Strace(t) // missing is said once, not for each round
	const atOnce = 4   // rounds wait for the disk and for strace more than they compute
	failed := map[string]int{}
	for first := 1; ; first += atOnce {
		wave := make([][]string, atOnce) // files whose fsync failed, by round
		t.Run(fmt.Sprintf("n=%d-%d", first, first+atOnce-1), func(t *testing.T) {
			for i := range atOnce {
				t.Run(strconv.Itoa(first+i), func(t *testing.T) {
					t.Parallel()
					wave[i] = failSync(t, first+i)
				})
			}
		})
		for _, files := range wave {
			for _, name := range files {
				failed[name]++
			}
			if len(files) > 0 || t.Failed() {
				continue
			}
			if failed["curt.db-wal"] < 3 {
				t.Fatalf("commits of the link store were hardly hit: %v", failed)
			}
			t.Logf("failed fsyncs by file: %v", failed)
			return
		}
		if t.Failed() {
			return
		}
	}
}

// failSync is one round: a new data folder, a server with its n-th fsyncs failing,
// creates one after the other, so that each needs an fsync, a kill and a healthy
// restart. It returns the files whose fsync failed.
func failSync(t *testing.T, n int) []string {
	t.Helper()
	data := t.TempDir()
	fault := curttest.FailSync(t, n)
	s, err := curttest.Launch(t, curttest.Options{
		Data: data, Wrap: fault.Wrap, Hopeless: func() bool { return commitsFailed(fault.Failed(t)) > 0 },
	})
	var made []curttest.Link
	refused := true
	if err == nil {
		atStart := commitsFailed(fault.Failed(t))
		made, refused = createSome(t, s, prefix(t, n), 16)
		// Leases sync too, so the last create may have come before.
		if !refused && commitsFailed(fault.Failed(t)) > atStart {
			if _, refused = createSome(t, s, prefix(t, n)+"/late", 1); !refused {
				t.Errorf("n = %d: a commit could not be synced, and creates are still acknowledged", n)
			}
		}
	} // else the start needed that fsync; refusing is right, and nothing was acknowledged
	s.Kill()
	healthy := curttest.Start(t, curttest.Options{Data: data})
	checkLinks(t, healthy, made)
	healthy.Kill()
	checkIntegrity(t, data)
	files := fault.Failed(t)
	t.Logf("n = %d: failed %v; started: %v, acknowledged: %d, refused: %v", n, files, err == nil, len(made), refused)
	return files
}

// commitsFailed counts the failed fsyncs of the link store's log.
func commitsFailed(files []string) (n int) {
	for _, name := range files {
		if name == "curt.db-wal" {
			n++
		}
	}
	return n
}

// createSome makes n links one after the other, and fails the test when the server
// acknowledges one after it refused another.
func createSome(t *testing.T, s *curttest.Server, under string, n int) (made []curttest.Link, refused bool) {
	t.Helper()
	conn := s.MustDial(t)
	for i := range n {
		dest := fmt.Sprintf("%s/%d", under, i)
		l, a, err := conn.Create(dest)
		switch {
		case err != nil:
			return made, true // it chose to end; so be it
		case a.Status == 201 && refused:
			t.Fatal("a create was acknowledged after one had failed to reach the disk")
		case a.Status == 201:
			made = append(made, curttest.Link{Code: l.Code, LongURL: dest})
		default:
			refused = true
		}
		if a.Closes() {
			conn = s.MustDial(t)
		}
	}
	return made, refused
}
