//go:build unix

package clicklog_test

import (
	"os"
	"syscall"
	"testing"

	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/clicklog/clicklogtest"
)

// Connections that have taken all descriptors keep no click from being made durable.
func TestSyncNeedsNoDescriptor(t *testing.T) {
	log := clicklogtest.Open(t, clicklog.Config{})
	end := clicklogtest.AppendOne(t, log, 0, clicklogtest.SomeDay())
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	f, opened := os.Open(os.DevNull)
	err := log.Sync()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if opened == nil {
		t.Error("there were descriptors left", f.Close())
	}
	if err != nil || log.Synced() != end {
		t.Errorf("synced to %v of %v: %v", log.Synced(), end, err)
	}
}
