//go:build !linux

package statefile

import "os"

// born is not asked for: device and inode are compared instead.
func born(*os.File) int64 { return 0 }
