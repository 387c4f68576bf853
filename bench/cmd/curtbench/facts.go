package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"curt/bench/internal/process"
	"curt/bench/internal/report"
)

// watch knows how the machine was when the run began.
type watch struct {
	begin   time.Time
	machine process.Clocks
	own     time.Duration
}

func startWatch() (w watch, err error) {
	if w.machine, err = process.Machinewide(); err != nil {
		return w, err
	}
	if w.own, err = process.Own(); err != nil {
		return w, err
	}
	w.begin = time.Now()
	return w, nil
}

// facts say where and how the figures were taken, and who else used the machine.
func (w watch) facts(ctx context.Context, s settings, args []string, temp string) ([]report.Fact, error) {
	m, err := process.Describe(temp)
	if err != nil {
		return nil, err
	}
	after, err := startWatch()
	if err != nil {
		return nil, err
	}
	share := func(d time.Duration) float64 {
		return 100 * max(d, 0).Seconds() / after.begin.Sub(w.begin).Seconds() / float64(runtime.NumCPU())
	}
	others := after.machine.Busy - w.machine.Busy - (after.own - w.own)
	return []report.Fact{
		{Name: "machine", Value: fmt.Sprintf("%s, %d cores, %.1f GiB, %s", m.CPU, m.Cores, float64(m.Memory)/(1<<30), m.Kernel)},
		{Name: "data on", Value: m.Filesystem},
		{Name: "Go", Value: m.Go},
		{Name: "commit", Value: commit(ctx)},
		{Name: "command", Value: "`" + commandLine(s.command, args) + "`"},
		{Name: "begun", Value: w.begin.UTC().Format(time.RFC3339) + ", took " + after.begin.Sub(w.begin).Round(time.Second).String()},
		{Name: "rounds", Value: s.roundsText()},
		{Name: "disturbance", Value: fmt.Sprintf("other processes took %.1f %% of the CPU time, the hypervisor %.1f %%",
			share(others), share(after.machine.Steal-w.machine.Steal))},
	}, nil
}

// commandLine is what was run, without the folders of this machine.
func commandLine(command string, args []string) string {
	script := "scripts/bench"
	if command != "figures" {
		script += "-" + command
	}
	line, folder := []string{script}, false
	for _, arg := range args {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		switch {
		case folder:
			arg, folder = "…", false
		case strings.HasPrefix(arg, "-") && slices.Contains([]string{"curt", "store", "temp", "out"}, name):
			if folder = value == ""; !folder {
				arg = "-" + name + "=…"
			}
		}
		line = append(line, arg)
	}
	return strings.Join(line, " ")
}

func (s settings) roundsText() string {
	if s.command == "api" {
		return strconv.Itoa(s.rounds)
	}
	return fmt.Sprintf("%d, each with %s of load before %s that are measured", s.rounds, s.warmup, s.measure)
}

func notes(command string) []string {
	switch command {
	case "soak":
		return []string{
			"One server and its load share the machine: each second 1,000 redirects to 20,000 of 500,000 links by Zipf's law, 20 creates, " +
				"and two each of lists, searches, statistics and previews. Memory is read once a second; each row is the median of a minute.",
		}
	case "postgres":
		return []string{
			"Load, server and PostgreSQL share the machine; fsync and synchronous_commit are on. Median and range are over the rounds; every second round runs in the " +
				"opposite order. CPU time of PostgreSQL is that of all of its processes within the window.",
			"one INSERT per request: as many clients, each with a connection and a prepared statement of its own that inserts the same row into the same table and " +
				"commits, without HTTP and without a program behind it.",
		}
	case "redis":
		return []string{
			"Load, servers, PostgreSQL and Redis share the machine. For CPU per redirect the server that is measured has core 0, load and Redis have core 1, and all " +
				"servers take turns in each round. What comes from Redis is asked of a server whose memory holds 2,000 of 50,000 links; what it had in memory all the same is taken out " +
				"at the price of the same round.",
			"A kill counts from the moment when its request was sent until every server has answered 410.",
		}
	case "api":
		return []string{
			"Median and range are over the rounds; every second round runs in the opposite order, and a ratio is the median of the rounds' ratios. " +
				"Load and server share the machine. Each turn is up to 300 requests (30 of bulk) within two seconds, each connection sending the next once it has its answer; " +
				"right before it GET /healthz is asked as often. CPU per request is the server process's, with its indexing.",
			"The store holds links of 19 months on two domains with titles, tags, dates and states, one in ten clicked, and one clicked ten million times. " +
				"Bulk and dedupe add to it. Found by a word: each link of the run, looked for every 25 ms.",
		}
	}
	return []string{
		"Median and range are over the rounds; every second round runs in the opposite order, and a ratio is the median of the rounds' ratios. " +
			"Load and server share the machine; only in the one-core figure each has a core of its own. Latency runs to the last byte of the answer: " +
			"of an open loop (cold redirects, clicks) from the moment when the request was due, of a closed loop (creates at full speed) from its sending. " +
			"CPU per request is the server process's user and system time over all requests that it answered meanwhile.",
		"bare net/http: a fixed answer of the same size. one fsync each: the same after 4 KiB appended and one fdatasync per request. " +
			"buffered log line: the same fields written to a buffered file.",
	}
}

// commit names the state of the checkout, whatever earlier tables lie in it;
// "unknown" outside of one.
func commit(ctx context.Context) string {
	hash, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(hash))
	changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ":/", ":(exclude,top)bench/results").Output()
	if err != nil || len(changed) > 0 {
		name += "-dirty"
	}
	return name
}
