//go:build !linux

package background

// lowerPriority is not implemented here: all threads are treated alike.
func lowerPriority() error { return nil }

// shortenSlices is not implemented here.
func shortenSlices() error { return nil }
