package lane

import (
	"syscall"
	"unsafe"
)

// canRead reports whether rawConn works here.
const canRead = true

// rawRead and rawWrite do one system call. The descriptor never blocks, so the scheduler is not
// told; RawConn keeps it open during the call.
func rawRead(fd uintptr, b []byte) (int, syscall.Errno) {
	return transfer(syscall.SYS_READ, fd, b)
}

func rawWrite(fd uintptr, b []byte) (int, syscall.Errno) {
	return transfer(syscall.SYS_WRITE, fd, b)
}

func transfer(call, fd uintptr, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))) //nolint:gosec // the one way to such a call
	return int(n), errno
}
