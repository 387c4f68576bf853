package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// report collects what the packages of all steps come to, and prints it. It is safe for
// several goroutines.
type report struct {
	out   io.Writer
	began time.Time
	// faults: this is make test-faults, so that none of its tests has its turn elsewhere.
	faults bool

	mu      sync.Mutex // guards what follows
	total   int
	phase   string // what is compiled, or ""
	done    []result
	running map[string]time.Time // packages whose tests run, since when
	printed time.Time            // when the last line was printed
	skipped []string
	failed  []string // packages
	why     []string // a line for each test that failed
	taken   bool     // back: what failed is unstable
}

// result is one package that ended.
type result struct {
	name string
	took time.Duration
	used time.Duration // of processors, by the tests and what they started and waited for
}

// quiet is for how long nothing is printed before waiting says what runs.
const quiet = 15 * time.Second

func newReport(out io.Writer, now time.Time, total int) *report {
	return &report{out: out, began: now, printed: now, total: total, running: make(map[string]time.Time)}
}

// compiling notes what is compiled.
func (r *report) compiling(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase = what
}

// compiled prints how long compiling took.
func (r *report) compiled(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase, r.printed = "", now
	_, _ = fmt.Fprintf(r.out, "compiled in %.0fs\n", now.Sub(r.began).Seconds())
}

// started notes that the tests of a package run: it is compiled.
func (r *report) started(name string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[name] = now
}

// ended prints the line of a package, behind what its tests printed when it failed.
func (r *report) ended(d result, passed bool, now time.Time, output string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, d.name)
	r.done = append(r.done, d)
	verdict := "ok"
	if !passed {
		verdict = "FAIL"
		r.failed = append(r.failed, d.name)
		_, _ = fmt.Fprint(r.out, output)
	}
	r.printed = now
	_, _ = fmt.Fprintf(r.out, "%4d/%d  %-4s %6.1fs  %s\n", len(r.done), r.total, verdict, d.took.Seconds(), d.name)
}

// because notes a test that failed.
func (r *report) because(f failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	says := []rune(strings.Join(strings.Fields(f.says), " "))
	if len(says) > mostSaid {
		says = append(says[:mostSaid], '…')
	}
	r.why = append(r.why, fmt.Sprintf("%s %s: %s", f.job.label(), f.test, string(says)))
}

// mostSaid is how many characters of what a test says the summary has.
const mostSaid = 600

// repeats says which test runs again.
func (r *report) repeats(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintln(r.out, "repeating", name)
}

// takeBack says that what failed did not fail again.
func (r *report) takeBack() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = true
}

// skip notes a test that did not run, and why.
func (r *report) skip(name, test, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if strings.Contains(why, "make test-faults") && !r.faults || strings.Contains(why, "without the race detector") { // it has its turn
		return
	}
	r.skipped = append(r.skipped, fmt.Sprintf("%s %s: %s", name, test, why))
}

// waiting says what runs, when no package has ended for a while.
func (r *report) waiting(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.printed) < quiet {
		return
	}
	r.printed = now
	var run []string
	for _, name := range slices.Sorted(maps.Keys(r.running)) {
		run = append(run, fmt.Sprintf("%s for %.0fs", name, now.Sub(r.running[name]).Seconds()))
	}
	if r.phase != "" {
		run = []string{"compiling " + r.phase}
	}
	_, _ = fmt.Fprintf(r.out, "          %6.0fs  running: %s\n", now.Sub(r.began).Seconds(), strings.Join(run, ", "))
}

// keep notes the durations, for those that did not run as they were.
func (r *report) keep(path string, took map[string]float64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range r.done {
		took[d.name] = d.took.Seconds()
	}
	text, err := json.MarshalIndent(took, "", "\t")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("note durations: %w", err)
	}
	return nil
}

// table prints the duration of each package, the longest first.
func (r *report) table() {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.done, func(a, b result) int { return cmp.Compare(b.took, a.took) })
	_, _ = fmt.Fprintln(r.out, "\n| package | s | processor s |\n|---|---|---|")
	for _, d := range r.done {
		_, _ = fmt.Fprintf(r.out, "| %s | %.1f | %.1f |\n", d.name, d.took.Seconds(), d.used.Seconds())
	}
}

// summary prints what was skipped, what failed and how long all of it took.
func (r *report) summary(now time.Time) (failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintln(r.out)
	for _, s := range r.skipped {
		_, _ = fmt.Fprintln(r.out, "skipped:", s)
	}
	verdict := "failed:"
	if r.taken {
		verdict = fmt.Sprintf("unstable, it passed %d times when repeated alone:", repetitions)
		r.failed = nil
	}
	for _, f := range r.failed {
		_, _ = fmt.Fprintln(r.out, "failed:", f)
	}
	for _, w := range r.why {
		_, _ = fmt.Fprintln(r.out, verdict, w)
	}
	_, _ = fmt.Fprintf(r.out, "%d of %d packages passed in %s, %d tests skipped\n",
		len(r.done)-len(r.failed), r.total, now.Sub(r.began).Round(time.Second), len(r.skipped))
	return len(r.failed) > 0
}
