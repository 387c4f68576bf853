// Run is what `make test` and `make test-faults` call: it runs the tests of the project
// through `go test`, a few packages at a time, and says as it goes which package is done,
// how many are to come and how long each took. What failed is printed whole, at once and
// again by name at the end; skipped tests are listed with their reasons.
//
//	go run ./test/run            what proves correctness
//	go run ./test/run -faults    kills, power cuts, chaos, long histories, long browser sessions
//	go run ./test/run -table     the same, and a table of durations by package at the end
//
// It exits with 1 when a test failed, with 2 when the tests could not be run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

func main() {
	faults := flag.Bool("faults", false, "run the long proofs instead")
	table := flag.Bool("table", false, "print the durations of all packages at the end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, *faults, *table)
	switch {
	case errors.Is(err, errFailed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// errFailed is what run returns when a test failed; it has been reported by then.
var errFailed = errors.New("tests failed")

// run runs one of the two sets. Lanes go beside each other: while the tests of one wait
// for a service or a timer, those of the other use the processors.
func run(ctx context.Context, faults, table bool) error {
	lanes, err := correctness(ctx)
	if faults {
		lanes, err = proofs()
	}
	if err != nil {
		return err
	}
	r := newReport(os.Stdout, time.Now())
	for _, l := range lanes {
		for _, s := range l {
			r.expect(s.packages)
		}
	}
	fmt.Printf("%d packages on %d processors\n", r.total, runtime.NumCPU())
	done := make(chan error, len(lanes))
	for _, l := range lanes {
		go func() { done <- l.run(ctx, r) }()
	}
	tick := time.NewTicker(15 * time.Second)
	defer tick.Stop()
	for open := len(lanes); open > 0; {
		select {
		case e := <-done:
			err = errors.Join(err, e)
			open--
		case now := <-tick.C:
			r.waiting(now)
		}
	}
	if table {
		r.table()
	}
	if failed := r.summary(time.Now()); failed {
		return errFailed
	}
	return err
}
