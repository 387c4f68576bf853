package main

import (
	"fmt"
	"os"
	"syscall"
)

// memory is where Linux keeps files in memory.
const memory = "/dev/shm"

// roomNeeded is how many bytes must be free there: all tests at once leave less than a third.
const roomNeeded = 4 << 30

// scratch has the tests keep their files in memory where there is room: what they prove is no
// property of a disk, a database of PostgreSQL is copied with a fifth of the processor time, and
// nobody waits for what other programs sync. Long proofs stay on the disk. What is returned
// removes all that is left.
func scratch() (remove func(), err error) {
	var s syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" {
		return func() {}, nil
	}
	if err := syscall.Statfs(memory, &s); err != nil || s.Bavail*uint64(s.Bsize) < roomNeeded {
		return func() {}, nil //nolint:nilerr // there is the disk
	}
	dir, err := os.MkdirTemp(memory, "curt-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755) //nolint:gosec // servers run as users of their own, and nothing in it is secret
	}
	if err == nil {
		err = os.Setenv("TMPDIR", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("keep files in memory: %w", err)
	}
	return func() { _ = os.RemoveAll(dir) }, nil
}
