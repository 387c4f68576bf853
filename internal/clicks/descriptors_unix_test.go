//go:build unix

package clicks_test

import (
	"os"
	"syscall"
	"testing"

	"curt/internal/clicks"
)

// Connections that have taken all descriptors keep no click from being made durable.
func TestSyncNeedsNoDescriptor(t *testing.T) {
	log := openLog(t, clicks.LogConfig{})
	end := appendOne(t, log, 0, someDay())
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
