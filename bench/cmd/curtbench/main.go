// Command curtbench takes the figures that curt promises. `curtbench figures`,
// `curtbench api`, `curtbench codes`, `curtbench bulks`, `curtbench expiry`, `curtbench soak`, `curtbench postgres` and `curtbench redis` are those that people run, by way of
// scripts/bench, scripts/bench-api and so on; the other commands are the processes that they start: the baseline server and the click pipeline.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"

	"curt/bench/internal/bare"
	"curt/bench/internal/clickcost"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process; it returns the exit code: 0 done, 1 failed or
// measured something that is worth nothing, 2 wrong usage.
func run(ctx context.Context, args []string, out, progress io.Writer) int {
	commands := map[string]func(context.Context, []string, io.Writer, io.Writer) error{
		"figures":   figuresCommand,
		"api":       apiCommand,
		"codes":     codesCommand,
		"bulks":     bulksCommand,
		"expiry":    expiryCommand,
		"soak":      soakCommand,
		"postgres":  postgresCommand,
		"redis":     redisCommand,
		"bare":      bareCommand,
		"clickcost": clickCostCommand,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		_, _ = fmt.Fprintln(progress, "usage: curtbench figures|api|codes|bulks|expiry|soak|postgres|redis|bare|clickcost [flags]; -help shows the flags")
		return 2
	}
	if err := commands[args[0]](ctx, args[1:], out, progress); err != nil {
		_, _ = fmt.Fprintf(progress, "curtbench %s: %v\n", args[0], err)
		return 1
	}
	return 0
}

func bareCommand(ctx context.Context, args []string, _, progress io.Writer) error {
	flags := flag.NewFlagSet("bare", flag.ContinueOnError)
	data := flags.String("data", "", "folder of the file that each durable create appends to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return bare.Run(ctx, *data, slog.New(slog.NewJSONHandler(progress, nil)))
}

func clickCostCommand(ctx context.Context, args []string, out, _ io.Writer) error {
	var c clickcost.Config
	flags := flag.NewFlagSet("clickcost", flag.ContinueOnError)
	flags.StringVar(&c.Folder, "data", "", "empty folder")
	flags.IntVar(&c.Clicks, "clicks", 3_000_000, "clicks to fold")
	flags.IntVar(&c.Links, "links", 100_000, "links that are clicked")
	base := flags.Bool("base", false, "write log lines instead")
	profile := flags.String("cpuprofile", "", "file for a CPU profile, which costs CPU time itself")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return fmt.Errorf("make the profile: %w", err)
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return fmt.Errorf("start the profile: %w", err)
		}
		defer pprof.StopCPUProfile()
	}
	measure := clickcost.Run
	if *base {
		measure = func(_ context.Context, c clickcost.Config) (clickcost.Cost, error) { return clickcost.Base(c) }
	}
	cost, err := measure(ctx, c)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(cost)
}
