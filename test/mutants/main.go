// Command mutants puts defects into code that must never be wrong, one at a time, and
// looks which of them the tests notice. `make mutants` runs it; docs/internals/mutants.md
// is what it writes, and says how to read it.
//
// It is a program of ours because go-gremlins/gremlins has neither a sample by a seed nor
// a run that can be taken up again, runs all tests of a package for every mutant, and
// knows no removed guard, no dropped error and no half of a condition.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"
)

// seed draws the sample. Another one draws other mutants, whose survivors need reasons.
const seed = "curt-1"

// result is a line of bin/mutants/results.jsonl. Of several lines with an ID the last counts.
type result struct {
	mutant
	Verdict string `json:"verdict"` // killed, survived, or none for what does not compile
	By      string `json:"by,omitempty"`
	Late    bool   `json:"late,omitempty"`    // killed by the ceiling alone
	Outside bool   `json:"outside,omitempty"` // tried by the named tests of other packages
	Seconds int    `json:"seconds"`
}

const (
	killed   = "killed"
	survived = "survived"
	none     = "none"
)

// run is what the workers share.
type run struct {
	root, dir string
	again     bool
	only      *regexp.Regexp

	mu      sync.Mutex
	results map[string]result // guarded by mu
	out     *os.File          // guarded by mu
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context) error {
	workers := flag.Int("workers", 1, "targets that are worked on at the same time; two at most make sense on two processors")
	pattern := flag.String("only", ".", "an expression for the targets' names")
	again := flag.Bool("again", false, "try the survivors again, after tests were added")
	stage := flag.String("stage", "own,outside,report", "what to do: own, outside, report, list")
	flag.Parse()
	root, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	r := &run{root: root, dir: filepath.Join(root, "bin", "mutants"), again: *again, only: regexp.MustCompile(*pattern), results: map[string]result{}}
	if err := r.load(); err != nil {
		return err
	}
	defer r.out.Close() //nolint:errcheck // every line is written by itself
	for _, s := range regexp.MustCompile(",").Split(*stage, -1) {
		switch s {
		case "own":
			err = r.each(ctx, *workers, r.own)
		case "outside":
			err = r.each(ctx, *workers, r.outside)
		case "report":
			err = r.report()
		case "list":
			err = r.each(ctx, 1, r.list)
		default:
			err = fmt.Errorf("there is no stage %q", s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// load reads what earlier runs have found out, so that this one goes on.
func (r *run) load() error {
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return fmt.Errorf("make a folder for results: %w", err)
	}
	out, err := os.OpenFile(filepath.Join(r.dir, "results.jsonl"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open results: %w", err)
	}
	r.out = out
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var one result
		if json.Unmarshal(lines.Bytes(), &one) == nil { // a line that a kill cut short is no result
			r.results[one.ID] = one
		}
	}
	return nil
}

// each has every target worked on by one of the workers, in the order of targets.
func (r *run) each(ctx context.Context, workers int, do func(context.Context, bench, target) error) error {
	queue := make(chan target)
	failures := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		b := bench{root: r.root, dir: filepath.Join(r.dir, fmt.Sprintf("w%d", w))}
		if err := os.MkdirAll(b.dir, 0o755); err != nil {
			return fmt.Errorf("make a folder for mutants: %w", err)
		}
		all.Go(func() {
			for t := range queue {
				if ctx.Err() != nil {
					continue
				}
				if err := do(ctx, b, t); err != nil {
					failures[w] = errors.Join(failures[w], fmt.Errorf("%s: %w", t.Name, err))
				}
			}
		})
	}
	for _, t := range targets() {
		if r.only.MatchString(t.Name) {
			queue <- t
		}
	}
	close(queue)
	all.Wait()
	return errors.Join(failures...)
}

// known returns the result of a mutant, unless its function has changed since.
func (r *run) known(m mutant) (result, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, ok := r.results[m.ID]
	if !ok || one.Text != m.Text {
		return result{}, false
	}
	one.mutant = m // lines move
	return one, true
}

func (r *run) add(one result) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results[one.ID] = one
	line, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("encode a result: %w", err)
	}
	if _, err := r.out.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write a result: %w", err)
	}
	fmt.Printf("%s %-8s %s:%d %s: %s (%ds)\n", one.ID, one.Verdict, one.File, one.Line, one.Operator, one.By, one.Seconds)
	return nil
}

// own tries a target's sample by the tests of its own package.
func (r *run) own(ctx context.Context, b bench, t target) error {
	all, err := mutants(r.root, t, seed)
	if err != nil {
		return err
	}
	var s suite
	drawn := 0
	for _, m := range all {
		if drawn == t.Mutants {
			break
		}
		one, ok := r.known(m)
		if !ok || r.again && one.Verdict == survived {
			if s.Sources == "" {
				if s, err = b.measure(ctx, t); err != nil {
					return err
				}
			}
			before := one
			if one, err = b.judge(ctx, t, s, m); err != nil {
				return err
			}
			if before.Verdict != survived || one.Verdict != survived {
				if err := r.add(one); err != nil {
					return err
				}
			}
		}
		if one.Verdict != none {
			drawn++
		}
	}
	return nil
}

// judge tries one mutant by the tests that run its line. A kill counts when the same
// tests fail twice: the first failure may have been the machine's.
func (b bench) judge(ctx context.Context, t target, s suite, m mutant) (result, error) {
	began := time.Now()
	one := result{mutant: m, Verdict: survived}
	list, err := b.overlay(m)
	if err != nil {
		return one, err
	}
	binary := filepath.Join(b.dir, "mutant.test")
	if err := b.build(ctx, t.Dir, list, binary); errors.Is(err, errBuild) {
		one.Verdict = none
		return one, nil
	} else if err != nil {
		return one, err
	}
	fast, slow := s.reaching(m)
	for _, tests := range [][]tested{fast, slow} {
		if len(tests) == 0 {
			continue
		}
		names, ceiling := []string{}, 30*time.Second
		for _, one := range tests {
			names, ceiling = append(names, one.Name), ceiling+8*one.Took
		}
		o, err := b.twice(ctx, t.Dir, !t.Services, ceiling, nil, func(names []string) []string {
			return append([]string{binary, "-test.failfast", "-test.timeout", "0", "-test.run", only(names)}, s.Flags...)
		}, names)
		if err != nil {
			return one, err
		}
		if len(o.Failed) > 0 {
			one.Verdict, one.By, one.Late = killed, o.Failed[0], o.Late
			break
		}
	}
	one.Seconds = int(time.Since(began).Seconds())
	return one, nil
}

// twice runs tests, and those that fail once more. What passes then has not failed.
func (b bench) twice(ctx context.Context, dir string, bound bool, ceiling time.Duration, env []string, command func([]string) []string, names []string) (outcome, error) {
	o, err := b.try(ctx, dir, bound, ceiling, env, command(names)...)
	if err != nil || len(o.Failed) == 0 || o.Late || slices.Contains(o.Failed, "panic") {
		return o, err
	}
	return b.try(ctx, dir, bound, ceiling, env, command(o.Failed)...)
}

// outside tries a target's survivors by the named tests of other packages, but for those
// that are known to be equivalent.
func (r *run) outside(ctx context.Context, b bench, t target) error {
	reasons, err := readReasons(r.root)
	if err != nil {
		return err
	}
	for _, m := range r.sample(t) {
		one, ok := r.known(m)
		if !ok || one.Verdict != survived || one.Outside && !r.again || reasons[m.ID].Equivalent {
			continue
		}
		one, err := b.judgeOutside(ctx, t, one)
		if err != nil {
			return err
		}
		if err := r.add(one); err != nil {
			return err
		}
	}
	return nil
}

func (b bench) judgeOutside(ctx context.Context, t target, one result) (result, error) {
	began := time.Now()
	one.Outside = true
	list, err := b.overlay(one.mutant)
	if err != nil {
		return one, err
	}
	curt, err := b.curt(ctx, list)
	if err != nil {
		return one, err
	}
	for _, n := range t.Outside {
		o, err := b.twice(ctx, "", false, 15*time.Minute, []string{"CURT_BIN=" + curt}, func(names []string) []string {
			run := n.Run
			if names != nil {
				run = only(names)
			}
			return []string{"go", "test", "-overlay", list, "-vet", "off", "-count", "1", "-failfast", "-timeout", "10m", "-run", run, "./" + n.Dir}
		}, nil)
		if err != nil {
			return one, err
		}
		if len(o.Failed) > 0 {
			one.Verdict, one.By, one.Late = killed, n.Dir+" "+o.Failed[0], o.Late
			break
		}
	}
	one.Seconds = int(time.Since(began).Seconds())
	return one, nil
}

// sample is the part of a target's mutants that earlier results make up, in its order.
func (r *run) sample(t target) []mutant {
	all, err := mutants(r.root, t, seed)
	if err != nil {
		return nil
	}
	var drawn []mutant
	for _, m := range all {
		if one, ok := r.known(m); ok && one.Verdict != none && len(drawn) < t.Mutants {
			drawn = append(drawn, m)
		}
	}
	return drawn
}

// list prints what would be tried.
func (r *run) list(_ context.Context, _ bench, t target) error {
	all, err := mutants(r.root, t, seed)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d of %d\n", t.Name, t.Mutants, len(all))
	for _, m := range all[:min(len(all), t.Mutants)] {
		fmt.Printf("  %s %s:%d %s %s: %q → %q\n", m.ID, m.File, m.Line, m.Func, m.Operator, m.From, m.To)
	}
	return nil
}
