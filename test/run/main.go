// Run is what `make test` and `make test-faults` call: it compiles the tests of the project,
// runs several packages at a time, the longest first, and says as it goes which package is
// done, how many are to come and how long each took. What failed is printed at once and named
// again at the end; skipped tests are listed with their reasons. A few tests that failed are run again
// alone (repeat.go); what passes then is reported as unstable.
//
//	go run ./test/run            what proves correctness
//	go run ./test/run -faults    kills, power cuts, chaos, long histories, long browser sessions
//	go run ./test/run -table     the same, and a table of durations by package at the end
//	go run ./test/run -usual     the same, and the order of first runs in test/run/usual.json
//
// Test binaries stay in the user's cache, so that what did not change is not linked again. It exits
// with 1 when a test failed, with 2 when the tests could not be run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

func main() {
	faults := flag.Bool("faults", false, "run the long proofs instead")
	table := flag.Bool("table", false, "print the durations of all packages at the end")
	usual := flag.Bool("usual", false, "write the durations into test/run/usual.json, by which a first run is ordered")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, *faults, *table, *usual)
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

// run runs one of the two sets.
func run(ctx context.Context, faults, table, usual bool) error {
	binaries, release, err := claimBinaries()
	if err != nil {
		return err
	}
	defer release()
	p, err := correctness(ctx, binaries)
	if faults {
		p, err = proofs(ctx, binaries)
	}
	if err != nil {
		return err
	}
	p.note = usual
	if p.inMemory {
		remove, err := scratch()
		if err != nil {
			return err
		}
		defer remove()
	}
	r := newReport(os.Stdout, time.Now(), len(p.jobs))
	r.faults = faults
	fmt.Printf("%d packages on %d processors\n", len(p.jobs), runtime.NumCPU())
	tick := time.NewTicker(quiet)
	defer tick.Stop()
	go func() {
		for now := range tick.C {
			r.waiting(now)
		}
	}()
	for _, b := range p.builds {
		r.compiling(filepath.Base(b.folder))
		if err := b.run(ctx); err != nil {
			return err
		}
	}
	r.compiled(time.Now())
	err = p.run(ctx, r)
	if table {
		r.table()
	}
	if failed := r.summary(time.Now()); failed {
		return errFailed
	}
	return err
}
