package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// job is the tests of one package.
type job struct {
	pkg   pkg
	note  string // stands behind the package in the report; "" for most
	build build
	args  []string // of the test binary
}

// label is what the report calls a job.
func (j job) label() string {
	if j.note == "" {
		return j.pkg.dir
	}
	return j.pkg.dir + " (" + j.note + ")"
}

// usualText is how long packages took when it was written (-usual), in seconds by set and label: the order of the first
// run in a clone.
//
//go:embed usual.json
var usualText []byte

// durations is where a run notes how long each package took, for the order of the next one of its set.
func (p plan) durations() string { return filepath.Join(p.binaries, "durations-"+p.set+".json") }

// usual returns how long each package took the last time, here or where usual.json was written.
func (p plan) usual() (map[string]float64, error) {
	all := map[string]map[string]float64{}
	if err := json.Unmarshal(usualText, &all); err != nil {
		return nil, fmt.Errorf("read usual.json: %w", err)
	}
	took := map[string]float64{}
	maps.Copy(took, all[p.set])
	if text, err := os.ReadFile(p.durations()); err == nil {
		_ = json.Unmarshal(text, &took) // without it the order is the usual one
	}
	return took, nil
}

// run runs all jobs, those that took longest the last time first: what is left for the end is
// short.
func (p plan) run(ctx context.Context, r *report) error {
	converter, err := exec.CommandContext(ctx, "go", "tool", "-n", "test2json").Output()
	if err != nil {
		return fmt.Errorf("find test2json: %w", err)
	}
	took, err := p.usual()
	if err != nil {
		return err
	}
	slices.SortStableFunc(p.jobs, func(a, b job) int {
		return cmp.Compare(expected(took, b), expected(took, a))
	})
	var (
		wg      sync.WaitGroup
		next    = make(chan job)
		errs    = make([]error, p.together)
		failed  = make([][]failure, p.together)
		convert = strings.TrimSpace(string(converter))
	)
	for i := range p.together {
		wg.Go(func() {
			for j := range next {
				f, err := j.run(convert, r)
				errs[i] = errors.Join(errs[i], err)
				failed[i] = append(failed[i], f...)
			}
		})
	}
	for _, j := range p.jobs {
		if ctx.Err() == nil {
			next <- j
		}
	}
	close(next)
	wg.Wait()
	errs = append(errs, ctx.Err(), r.keep(p.durations(), took))
	if ctx.Err() == nil {
		errs = append(errs, repeat(convert, slices.Concat(failed...), r))
	}
	if p.note {
		errs = append(errs, p.noteUsual(took))
	}
	return errors.Join(errs...)
}

// noteUsual writes durations into usual.json, for the first run of other clones.
func (p plan) noteUsual(took map[string]float64) error {
	all := map[string]map[string]float64{}
	if err := json.Unmarshal(usualText, &all); err != nil {
		return fmt.Errorf("read usual.json: %w", err)
	}
	all[p.set] = map[string]float64{}
	for _, j := range p.jobs {
		all[p.set][j.label()] = math.Round(took[j.label()]*10) / 10
	}
	text, err := json.MarshalIndent(all, "", "\t")
	if err == nil {
		err = os.WriteFile("test/run/usual.json", append(text, '\n'), 0o644) //nolint:gosec // it is part of the sources
	}
	if err != nil {
		return fmt.Errorf("note durations: %w", err)
	}
	return nil
}

// expected returns how long a job took; one that nobody knows of may take long.
func expected(took map[string]float64, j job) float64 {
	if s, known := took[j.label()]; known {
		return s
	}
	return time.Hour.Seconds()
}

// run runs the test binary in its package's folder, as go test does. It returns what failed.
func (j job) run(converter string, r *report) ([]failure, error) {
	began := time.Now()
	r.started(j.label(), began)
	o, err := j.outcome(converter)
	if err != nil {
		return nil, err
	}
	for _, s := range o.skipped {
		r.skip(j.label(), s.test, s.why)
	}
	r.ended(result{name: j.label(), took: time.Since(began), used: o.used}, o.passed, time.Now(), o.text())
	return o.failures(j), nil
}

// outcome is what a test binary came to.
type outcome struct {
	passed  bool
	used    time.Duration // of processors
	failed  []told        // tests that failed, subtests before the tests that they are of
	rest    string        // what belongs to no test that ended: a panic, or a test that did not end
	skipped []skipped
}

// told is what a test printed.
type told struct{ test, output string }

// skipped is a test that did not run.
type skipped struct{ test, why string }

// text is all that was printed of what failed.
func (o outcome) text() string {
	var b strings.Builder
	for _, f := range o.failed {
		b.WriteString(f.output)
	}
	return b.String() + o.rest
}

// outcome runs the test binary.
func (j job) outcome(converter string) (o outcome, err error) {
	args := append([]string{"-t", "-p", j.pkg.path, j.build.binary(j.pkg.path), "-test.v=test2json", "-test.timeout=30m", "-test.paniconexit0"}, j.args...)
	cmd := exec.Command(converter, args...) //nolint:gosec,noctx // an interrupt reaches the tests through the process group, so that they clean up
	cmd.Dir = j.pkg.dir
	cmd.Env = append(os.Environ(), "PWD="+filepath.Join(cwd(), j.pkg.dir))
	var printed bytes.Buffer
	cmd.Stderr = &printed
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return o, fmt.Errorf("run %s: %w", j.label(), err)
	}
	o.follow(out)
	o.passed = cmd.Wait() == nil && o.passed
	o.used = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if !o.passed {
		o.rest += printed.String()
	}
	return o, nil
}

// cwd is the project's folder.
func cwd() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	return dir
}

// event is a line of test2json.
type event struct {
	Action string
	Test   string
	Output string
}

// follow reads events until the binary ends.
func (o *outcome) follow(from io.Reader) {
	output := make(map[string]*strings.Builder)
	for d := json.NewDecoder(from); ; {
		var e event
		if err := d.Decode(&e); err != nil {
			break
		}
		if output[e.Test] == nil {
			output[e.Test] = new(strings.Builder)
		}
		switch {
		case e.Action == "output":
			output[e.Test].WriteString(e.Output)
		case e.Test == "":
			o.passed = o.passed || e.Action == "pass"
		case e.Action == "skip":
			o.skipped = append(o.skipped, skipped{e.Test, reason(output[e.Test].String())})
		case e.Action == "fail":
			o.failed = append(o.failed, told{e.Test, output[e.Test].String()})
		}
		if e.Test != "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
			delete(output, e.Test)
		}
	}
	for _, text := range output {
		o.rest += text.String()
	}
}

// reason returns the last line of a skipped test that is its own.
func reason(output string) (why string) {
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "===") {
			why = line
		}
	}
	return why
}
