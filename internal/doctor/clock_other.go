//go:build !linux

package doctor

// synchronised takes the clock to be kept right where nobody can be asked.
func synchronised() bool { return true }
