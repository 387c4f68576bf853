package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU time in /proc: USER_HZ, 100 a second on every
// architecture that Go runs on.
const tick = 10 * time.Millisecond

// CPU returns the CPU time of a process so far, user and system, of all its
// threads; 10 ms are the smallest step.
func CPU(pid int) (time.Duration, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return parseStat(string(b))
}

// parseStat reads utime and stime, fields 14 and 15 of proc_pid_stat(5). The
// second field, the name, may hold anything but ends with the last parenthesis.
func parseStat(s string) (time.Duration, error) {
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(fields) < 13 {
		return 0, errors.New("read CPU time: too few fields")
	}
	var ticks time.Duration
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time: %w", err)
		}
		ticks += time.Duration(n)
	}
	return ticks * tick, nil
}

// RSS returns the resident memory of a process in bytes.
func RSS(pid int) (int64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("read resident memory: %w", err)
	}
	return parseKiB(string(b), "VmRSS:")
}

// parseKiB reads a line such as "VmRSS:	  1234 kB".
func parseKiB(s, name string) (int64, error) {
	for line := range strings.Lines(s) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read %s %w", name, err)
			}
			return n << 10, nil
		}
	}
	return 0, fmt.Errorf("no %s line", name)
}

// Steal returns how much time the hypervisor has taken from the machine so far,
// summed over its cores: what a noisy neighbour costs.
func Steal() (time.Duration, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read stolen time: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, errors.New("read stolen time: unknown format")
	}
	n, err := strconv.ParseInt(fields[8], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read stolen time: %w", err)
	}
	return time.Duration(n) * tick, nil
}
