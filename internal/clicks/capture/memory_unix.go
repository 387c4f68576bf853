//go:build unix

package capture

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// untouched returns n zero bytes that cost resident memory only once written and
// do not belong to the Go heap; they live as long as owner.
func untouched(owner *Ring, n int) []byte {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return make([]byte, n) // the heap serves as well, it only counts for the collector
	}
	runtime.AddCleanup(owner, func(mem []byte) { _ = unix.Munmap(mem) }, mem)
	return mem
}
