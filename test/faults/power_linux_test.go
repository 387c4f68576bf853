package faults_test

import (
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// TestPowerCutLosesNoLink takes away everything that is not on the disk, at random
// moments under creates: every 201 is there after the restart.
func TestPowerCutLosesNoLink(t *testing.T) {
	disk := curttest.NewDisk(t, 256)
	n := rounds(6, 200)
	made := cutPower(t, disk, n, nil)
	if len(made) < 20*n {
		t.Fatalf("only %d links in %d rounds: that proves little", len(made), n)
	}
	s := curttest.Start(t, curttest.Options{Data: disk.Path})
	checkLinks(t, s, made)
	s.Kill()
	checkIntegrity(t, disk.Path)
	t.Logf("%d links over %d power cuts", len(made), n)
}

// TestPowerCutWithoutFsyncLosesLinks is the control: with synchronous=NORMAL the
// same cut must lose acknowledged links, or the test above shows nothing.
func TestPowerCutWithoutFsyncLosesLinks(t *testing.T) {
	for range 5 {
		disk := curttest.NewDisk(t, 256)
		made := cutPower(t, disk, 1, []string{"CURT_SQLITE_SYNCHRONOUS=NORMAL"})
		s, err := curttest.Launch(t, curttest.Options{Data: disk.Path})
		if err != nil {
			return // it lost so much that it does not start
		}
		if wrong := s.Follow(t, made, 8); len(wrong) > 0 {
			t.Logf("of %d links at least %d were lost, as must be", len(made), len(wrong))
			return
		}
	}
	t.Fatal("5 power cuts with synchronous=NORMAL lost nothing: the cut does not drop unsynced pages")
}

// cutPower runs creates on the disk and cuts its power, n times, and returns what
// was acknowledged. Each restart must find what the rounds before acknowledged.
func cutPower(t *testing.T, disk *curttest.Disk, n int, env []string) (made []curttest.Link) {
	t.Helper()
	var last []curttest.Link
	for round := range n {
		s := curttest.Start(t, curttest.Options{Data: disk.Path, Env: env})
		for _, wrong := range s.Follow(t, last, 4) {
			t.Fatal("acknowledged before the last power cut, but", wrong)
		}
		c := s.Create(t, 32, prefix(t, round))
		someTime(50*time.Millisecond, 400*time.Millisecond)
		disk.CutPower(t)
		// The server lives on over a dead disk: what it acknowledges now is a lie
		// that the restart shows.
		someTime(20*time.Millisecond, 100*time.Millisecond)
		s.Kill()
		c.Wait()
		disk.Remount(t)
		last = c.Made()
		made = append(made, last...)
	}
	return made
}

// TestFailedFsyncIsNeverAcknowledged fails the n-th fsync of each thread, for n =
// 1, 2, 3 … until none fires, under creates: what was acknowledged is there, and
// after a failed fsync of the link store nothing more is acknowledged.
func TestFailedFsyncIsNeverAcknowledged(t *testing.T) {
	injected := 0
	for n := 1; ; n++ {
		fired, made, refused := failSync(t, n)
		if fired == 0 {
			if n < 5 {
				t.Fatalf("no fsync failed at n = %d: too few were tried", n)
			}
			t.Logf("%d fsyncs failed over n = 1 to %d", injected, n-1)
			return
		}
		injected += fired
		t.Logf("n = %d: %d fsyncs failed, %d links made, refused: %v", n, fired, made, refused)
	}
}

// failSync is one round: a new data folder, a server with its n-th fsyncs failing,
// a fixed number of creates, a kill and a healthy restart.
func failSync(t *testing.T, n int) (fired, acknowledged int, refused bool) {
	t.Helper()
	data := t.TempDir()
	fault := curttest.FailSync(t, n, false)
	s, err := curttest.Launch(t, curttest.Options{Data: data, Wrap: fault.Wrap})
	if err != nil { // the start needs its fsyncs; refusing is right, nothing was acknowledged
		s.Kill()
		s = curttest.Start(t, curttest.Options{Data: data})
		checkLinks(t, s, nil)
		fired, _ = fault.Fired(t)
		return fired, 0, true
	}
	made, refused := createSome(t, s)
	s.Kill()
	s = curttest.Start(t, curttest.Options{Data: data})
	checkLinks(t, s, made)
	s.Kill()
	checkIntegrity(t, data)
	fired, _ = fault.Fired(t)
	return fired, len(made), refused
}

// createSome makes links one after the other, so that each costs an fsync, and
// fails the test when the server acknowledges one after it refused another.
func createSome(t *testing.T, s *curttest.Server) (made []curttest.Link, refused bool) {
	t.Helper()
	conn := s.MustDial(t)
	for i := range 24 {
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
