package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
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

// Reaped returns the CPU time of those children of a process that it has waited for.
func Reaped(pid int) (time.Duration, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return parseTimes(string(b), 13)
}

// parseStat reads utime and stime, fields 14 and 15 of proc_pid_stat(5).
func parseStat(s string) (time.Duration, error) { return parseTimes(s, 11) }

// parseTimes adds two times of proc_pid_stat(5); at counts from the third field on. The
// second field, the name, may hold anything but ends with the last parenthesis.
func parseTimes(s string, at int) (time.Duration, error) {
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(fields) < at+2 {
		return 0, errors.New("read CPU time: too few fields")
	}
	var ticks time.Duration
	for _, f := range fields[at : at+2] {
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

// Clocks are CPU times of the machine since it started, summed over its cores.
type Clocks struct {
	Busy  time.Duration // of all processes and the kernel
	Steal time.Duration // taken by the hypervisor: what a noisy neighbour costs
}

// Machinewide reads the clocks of the machine.
func Machinewide() (Clocks, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Clocks{}, fmt.Errorf("read the machine's clocks: %w", err)
	}
	return parseClocks(string(b))
}

// parseClocks reads the first line of proc_stat(5): user, nice, system, idle,
// iowait, irq, softirq, steal.
func parseClocks(s string) (c Clocks, err error) {
	line, _, _ := strings.Cut(s, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return Clocks{}, errors.New("read the machine's clocks: unknown format")
	}
	for i, f := range fields[1:9] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return Clocks{}, fmt.Errorf("read the machine's clocks: %w", err)
		}
		switch i {
		case 0, 1, 2, 5, 6:
			c.Busy += time.Duration(n) * tick
		case 7:
			c.Steal += time.Duration(n) * tick
		}
	}
	return c, nil
}

// Own returns the CPU time of this process and of its children that have ended.
func Own() (time.Duration, error) {
	var sum time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			return 0, fmt.Errorf("read CPU time: %w", err)
		}
		sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return sum, nil
}
