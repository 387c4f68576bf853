package doctor

import "golang.org/x/sys/unix"

// synchronised asks the kernel whether a program keeps the clock right. Where it may
// not be asked, that is taken to be so.
func synchronised() bool {
	state, err := unix.Adjtimex(&unix.Timex{})
	return err != nil || state != unix.TIME_ERROR
}
