package capture

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memoryFiles is where files lie in memory and on no disk.
const memoryFiles = "/dev/shm"

// newPage makes a file of zeros and maps it. Its memory is there afterwards: a write to it can
// no longer fail, which would kill the process.
func newPage(name string, size int) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	memory, err := mapPage(f, size)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(err, removed(name))
	}
	return memory, nil
}

func mapPage(f *os.File, size int) ([]byte, error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return nil, fmt.Errorf("find the file system of %s: %w", f.Name(), err)
	}
	if s.Type != unix.TMPFS_MAGIC && s.Type != unix.RAMFS_MAGIC {
		return nil, fmt.Errorf("%s is on a disk, which would delay redirects", f.Name())
	}
	if err := unix.Fallocate(int(f.Fd()), 0, 0, int64(size)); err != nil {
		return nil, fmt.Errorf("make %s: %w", f.Name(), err)
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", f.Name(), err)
	}
	return memory, nil
}

func freePage(memory []byte) error { return unix.Munmap(memory) }

// readPage reads a file that newPage made. One of another user, who may have put it there, is
// refused.
func readPage(name string, size int) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return nil, fmt.Errorf("check %s: %w", name, err)
	}
	if s.Mode&unix.S_IFMT != unix.S_IFREG || s.Size != int64(size) || int(s.Uid) != os.Geteuid() && os.Geteuid() != 0 {
		return nil, fmt.Errorf("%s was not created by curt", name)
	}
	page := make([]byte, size)
	if _, err := f.ReadAt(page, 0); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return page, nil
}

// whereabouts returns the boot of the machine, and device and inode of a folder.
func whereabouts(folder string) (boot string, device, inode uint64, err error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0, 0, err
	}
	var s unix.Stat_t
	if err := unix.Stat(folder, &s); err != nil {
		return "", 0, 0, fmt.Errorf("check %s: %w", folder, err)
	}
	return strings.TrimSpace(string(b)), s.Dev, s.Ino, nil
}

// counter is the number at the begin of a line.
func counter(memory []byte, line int) *uint64 {
	return (*uint64)(unsafe.Pointer(&memory[line*tallyLine])) //nolint:gosec // mapped memory, at a multiple of eight
}
