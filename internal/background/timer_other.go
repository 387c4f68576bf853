//go:build !linux

package background

import "time"

// timers sleep on systems that are not Linux.
type timers struct{}

func (timers) wait(d time.Duration) { time.Sleep(d) }

func (timers) close() error { return nil }
