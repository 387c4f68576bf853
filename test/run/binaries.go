package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// claimBinaries returns the folder of test binaries, which is this run's alone until release is called. It is in the
// user's cache, beside that of Go, which has what is compiled and not what is linked: another clone of the project
// links what differs. Runs at the same time have a folder each. Without a cache it is in the project's folder.
func claimBinaries() (folder string, release func(), err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = "bin"
	}
	for n := 0; ; n++ {
		folder, err = filepath.Abs(filepath.Join(cache, "curt-tests", strconv.Itoa(n)))
		if err == nil {
			err = os.MkdirAll(folder, 0o755)
		}
		if err != nil {
			return "", nil, fmt.Errorf("a folder for test binaries: %w", err)
		}
		lock, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return "", nil, fmt.Errorf("a folder for test binaries: %w", err)
		}
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return folder, func() { _ = lock.Close() }, nil
		}
		_ = lock.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return "", nil, fmt.Errorf("lock a folder for test binaries: %w", err)
		}
	}
}
