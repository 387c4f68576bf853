package faults_test

import (
	"slices"
	"testing"

	"curt/test/internal/curttest"
)

// TestFailedFsyncIsNeverAcknowledged fails the n-th fsync of each thread, for n =
// 1, 2, 3 … until none fires, under creates. What was acknowledged is there after
// the restart, and once a commit of the link store could not be synced, nothing
// more is acknowledged: after a failed fsync the kernel has forgotten which pages
// are dirty, and the next one answers 0 for pages that never reached the disk.
func TestFailedFsyncIsNeverAcknowledged(t *testing.T) {
	failed := map[string]int{} // by file
	for n := 1; ; n++ {
		files := failSync(t, n)
		if len(files) == 0 {
			if failed["curt.db-wal"] < 3 {
				t.Fatalf("commits of the link store were hardly hit: %v", failed)
			}
			t.Logf("n = 1 to %d: failed fsyncs by file: %v", n-1, failed)
			return
		}
		for _, name := range files {
			failed[name]++
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
	s, err := curttest.Launch(t, curttest.Options{Data: data, Wrap: fault.Wrap})
	var made []curttest.Link
	refused := true
	if err == nil {
		made, refused = createSome(t, s, 24)
		// Leases and checkpoints sync too, so the last create may have come before.
		if !refused && slices.Contains(fault.Failed(t), "curt.db-wal") {
			if _, refused = createSome(t, s, 1); !refused {
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

// createSome makes n links one after the other, and fails the test when the server
// acknowledges one after it refused another.
func createSome(t *testing.T, s *curttest.Server, n int) (made []curttest.Link, refused bool) {
	t.Helper()
	conn := s.MustDial(t)
	for i := range n {
		dest := prefix(t, i)
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
