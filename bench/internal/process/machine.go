package process

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Machine is what a figure depends on beside the program.
type Machine struct {
	CPU        string
	Cores      int // that this process may use
	Memory     int64
	Kernel     string
	Filesystem string // of the data, such as "ext4 on /dev/vda (rw,relatime)"
	Go         string
}

// Describe returns the machine as seen from a process whose data lies in folder.
func Describe(folder string) (Machine, error) {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH}
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return m, fmt.Errorf("describe the CPU: %w", err)
	}
	m.CPU = model(string(info))
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return m, fmt.Errorf("describe the memory: %w", err)
	}
	if m.Memory, err = parseKiB(string(memory), "MemTotal:"); err != nil {
		return m, err
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return m, fmt.Errorf("describe the kernel: %w", err)
	}
	m.Kernel = unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return m, fmt.Errorf("describe the file system: %w", err)
	}
	abs, err := filepath.Abs(folder)
	if err != nil {
		return m, fmt.Errorf("describe the file system: %w", err)
	}
	m.Filesystem = mounted(string(mounts), abs)
	return m, nil
}

// model returns the name of the first core, "unknown" where the kernel has none.
func model(info string) string {
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// mounted describes the mount with the longest point that holds the path; of two
// on one point the later lies on top.
func mounted(mounts, path string) string {
	best, found := "", "unknown"
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		inside := f[1] == "/" || path == f[1] || strings.HasPrefix(path, f[1]+"/")
		if inside && len(f[1]) >= len(best) {
			best, found = f[1], fmt.Sprintf("%s on %s (%s)", f[2], f[0], f[3])
		}
	}
	return found
}
