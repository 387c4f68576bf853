//go:build !linux

package server

import "time"

// clocks sleep on systems that are not Linux.
type clocks struct{}

func (clocks) wait(d time.Duration) { time.Sleep(d) }

func (clocks) close() error { return nil }
