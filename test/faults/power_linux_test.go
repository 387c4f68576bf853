package faults_test

import (
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// TestPowerCutLosesNoLink takes away everything that is not on the disk, at random
// moments under creates and deletes: every link that was answered 201 is there
// after the restart, every one answered 204 stays deleted.
func TestPowerCutLosesNoLink(t *testing.T) {
	disk := curttest.NewDisk(t, 256)
	n := rounds(6, 200)
	made, deleted := cutPower(t, disk, n, nil)
	if len(made) < 20*n || len(deleted) < n {
		t.Fatalf("only %d links and %d deletions in %d rounds: that proves little", len(made), len(deleted), n)
	}
	s := curttest.Start(t, curttest.Options{Data: disk.Path})
	checkLinks(t, s, made)
	for _, wrong := range s.AllGone(t, deleted, 8) {
		t.Error("deleted, but", wrong)
	}
	s.Kill()
	checkIntegrity(t, disk.Path)
	t.Logf("%d links, %d deletions over %d power cuts", len(made), len(deleted), n)
}

// TestPowerCutWithoutFsyncLosesLinks is the control: with synchronous=NORMAL the
// same cut must lose acknowledged links, or the test above shows nothing.
func TestPowerCutWithoutFsyncLosesLinks(t *testing.T) {
	for range 5 {
		disk := curttest.NewDisk(t, 256)
		made, _ := cutPower(t, disk, 1, []string{"CURT_SQLITE_SYNCHRONOUS=NORMAL"})
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

// cutPower runs creates and deletes on the disk and cuts its power, n times, and
// returns what was acknowledged. Each restart must find what the rounds before
// acknowledged.
func cutPower(t *testing.T, disk *curttest.Disk, n int, env []string) (made, deleted []curttest.Link) {
	t.Helper()
	var last []curttest.Link
	for round := range n {
		s := curttest.Start(t, curttest.Options{Data: disk.Path, Env: env})
		for _, wrong := range s.Follow(t, last, 4) {
			t.Fatal("acknowledged before the last power cut, but", wrong)
		}
		churn := s.Churn(t, 2, prefix(t, round))
		c := s.Create(t, 32, prefix(t, round))
		c.AwaitMade(t, 32)
		someTime(0, 300*time.Millisecond)
		cut := time.Now()
		disk.CutPower(t)
		s.Kill()
		c.Wait()
		churn.Wait()
		disk.Remount(t)
		last = before(cut, c.Made())
		made = append(made, last...)
		deleted = append(deleted, before(cut, churn.Deleted())...)
	}
	return made, deleted
}

// before returns the links that were acknowledged before the power was cut. With
// the power goes the machine, so nobody can be told anything later; here the
// server lives on for a moment, and an fsync that is under way while the kernel
// shuts the file system down may answer 0 for pages that are gone (seen with
// strace on Linux 6.18: the commit's transaction is aborted and forgotten before
// fsync looks for it). That server did nothing wrong.
func before(cut time.Time, links []curttest.Link) (kept []curttest.Link) {
	for _, l := range links {
		if l.At.Before(cut) {
			kept = append(kept, l)
		}
	}
	return kept
}
