package curttest

import (
	"os/exec"
	"syscall"
)

// tie makes the kernel end the child when the test process dies, however it dies.
func tie(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
