package datafolder

import (
	"math"

	"golang.org/x/sys/unix"
)

// FreeBytes returns what this user may still write to the disk of a folder; not a
// number when the disk does not say.
func FreeBytes(folder string) float64 {
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil {
		return math.NaN()
	}
	return float64(disk.Bavail) * float64(disk.Bsize)
}
