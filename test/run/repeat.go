package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A test that fails is repeated, alone on the machine: what passes then failed because of what ran beside it. The rules
// keep that from hiding a defect (docs/decisions/0089):
//   - what a test says of a broken promise (a link or click lost, a code given twice), of a data race or of a panic is final;
//   - more than mostRepeated tests that fail are no accident, and none of them is repeated;
//   - a test has to pass each of its repetitions;
//   - the report names it as unstable, with what it said.
const (
	mostRepeated = 3
	repetitions  = 3
)

// final finds what no repetition takes back.
var final = regexp.MustCompile(`(?i)\b(acknowledged|twice|again to|(is|are|was|were) lost|lost (links?|clicks?|ids)|(given|handed out) to|violat\w+|proves nothing|panic:|data race|fatal error|deadlock)\b`)

// failure is a test that failed, without those that it is of.
type failure struct {
	job   job
	test  string // with what it is part of; "" = the binary as a whole
	says  string // the lines of its own that say why
	final bool
}

// top is the test that can be run by itself.
func (f failure) top() string {
	name, _, _ := strings.Cut(f.test, "/")
	return name
}

// failures returns the tests that failed by themselves, and what they say.
func (o outcome) failures(j job) (all []failure) {
	if o.passed {
		return nil
	}
	for i, f := range o.failed {
		part := slices.ContainsFunc(o.failed[:i], func(before told) bool { return strings.HasPrefix(before.test, f.test+"/") })
		says := reasons(f.output)
		if part && says == "" {
			continue
		}
		all = append(all, failure{job: j, test: f.test, says: says, final: final.MatchString(says)})
	}
	if len(all) == 0 || strings.Contains(o.rest, "panic:") || final.MatchString(reasons(o.rest)) {
		all = append(all, failure{job: j, says: reasons(o.rest), final: true})
	}
	return all
}

// place is how package testing begins what a test says: the file and line.
var place = regexp.MustCompile(`^\s+\w+\.go:\d+: `)

// reasons returns what a test says by t.Error and t.Fatal, and what the runtime does, without the logs of servers.
func reasons(output string) string {
	var b strings.Builder
	said := false // the last line with a place was no log
	for line := range strings.Lines(output) {
		switch {
		case place.MatchString(line):
			said = !strings.Contains(line, ": log of ")
		case strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || strings.HasPrefix(line, "WARNING: DATA RACE"):
			said = true
		case !strings.HasPrefix(line, "        "): // it goes on with this
			said = false
		}
		if said {
			b.WriteString(strings.TrimSpace(line) + "\n")
		}
	}
	return b.String()
}

// repeat runs what failed again, where the rules above allow it, one test after the other.
func repeat(converter string, failed []failure, r *report) error {
	tests := map[string][]failure{} // by job and test
	for _, f := range failed {
		r.because(f)
		name := f.job.label() + " " + f.top()
		tests[name] = append(tests[name], f)
	}
	if len(tests) == 0 || len(tests) > mostRepeated || slices.ContainsFunc(failed, func(f failure) bool { return f.final }) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		r.repeats(name)
		j := tests[name][0].job
		j.args = []string{"-test.run", "^" + tests[name][0].top() + "$", fmt.Sprintf("-test.count=%d", repetitions)}
		o, err := j.outcome(converter)
		if err != nil {
			return err
		}
		for _, f := range o.failures(j) {
			r.because(f)
		}
		if !o.passed {
			return nil // nothing is taken back
		}
	}
	r.takeBack()
	return nil
}
