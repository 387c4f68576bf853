//go:build !linux

package lane

import "syscall"

// canRead is false: elsewhere net.Conn is read.
const canRead = false

func rawRead(uintptr, []byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }

func rawWrite(uintptr, []byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }
