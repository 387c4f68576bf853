package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A step is one call of `go test`.
type step struct {
	name     string   // stands behind its packages in the report; "" for most
	dir      string   // of its module; "" for this one
	args     []string // of go test, before the packages
	env      []string
	packages []string
}

// lane is steps that run one after the other.
type lane []step

// together is how many packages a step compiles or runs at a time. Two lanes of two keep
// two processors busy, although most tests wait for something now and then.
const together = "3"

// run runs the steps of a lane, all of them even if one fails.
func (l lane) run(ctx context.Context, r *report) error {
	var all error
	for _, s := range l {
		if len(s.packages) == 0 || ctx.Err() != nil {
			continue
		}
		all = errors.Join(all, s.run(ctx, r))
	}
	return all
}

// run runs one step and reports its packages. A test that failed is no error of the
// step: the report has it.
func (s step) run(ctx context.Context, r *report) error {
	args := append([]string{"test", "-json", "-p", together}, s.args...)
	cmd := exec.CommandContext(ctx, "go", append(args, s.packages...)...) //nolint:gosec // the arguments are ours
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), s.env...)
	// An interrupt reaches the tests through the process group; they clean up and end.
	cmd.Cancel = func() error { return nil }
	var told bytes.Buffer
	cmd.Stderr = &told
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("go test %s: %w", s.name, err)
	}
	ended := s.follow(out, r)
	err = cmd.Wait()
	if ended < len(s.packages) || told.Len() > 0 && err != nil && ended == 0 {
		return fmt.Errorf("go test %s ended after %d of %d packages: %w\n%s", s.name, ended, len(s.packages), err, told.String())
	}
	return nil
}

// event is a line of `go test -json` (go doc test2json).
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	Elapsed     float64 // seconds
	ImportPath  string  // of build-output
	FailedBuild string
}

// follow reads the events of a step until it ends, and returns how many packages did.
func (s step) follow(from io.Reader, r *report) (ended int) {
	output := make(map[string]*strings.Builder) // of a package, or of a build
	last := make(map[string]string)             // the last line of a test that is not the framework's
	write := func(key, text string) {
		if output[key] == nil {
			output[key] = new(strings.Builder)
		}
		output[key].WriteString(text)
	}
	for d := json.NewDecoder(from); ; {
		var e event
		if err := d.Decode(&e); err != nil {
			return ended
		}
		name := s.label(e.Package)
		switch e.Action {
		case "start":
			r.started(name, time.Now())
		case "build-output":
			write(e.ImportPath, e.Output)
		case "output":
			write(e.Package, e.Output)
			if text := strings.TrimSpace(e.Output); e.Test != "" && text != "" && !strings.HasPrefix(text, "---") && !strings.HasPrefix(text, "===") {
				last[e.Package+" "+e.Test] = text
			}
		case "skip", "pass", "fail":
			if e.Test != "" {
				if e.Action == "skip" {
					r.skip(name, e.Test, last[e.Package+" "+e.Test])
				}
				continue
			}
			if e.FailedBuild != "" && output[e.FailedBuild] != nil {
				write(e.Package, output[e.FailedBuild].String())
			}
			ended++
			s.end(e, name, output[e.Package], r)
			delete(output, e.Package)
		}
	}
}

// end reports a package that ended.
func (s step) end(e event, name string, output *strings.Builder, r *report) {
	verdict := map[string]string{"pass": "ok", "skip": "ok", "fail": "FAIL"}[e.Action]
	text := ""
	if output != nil {
		text = output.String()
	}
	if strings.Contains(text, "\t(cached)\n") {
		verdict = "kept"
	}
	r.ended(name, verdict, time.Duration(e.Elapsed*float64(time.Second)), time.Now(), text)
}

// label is what the report calls a package.
func (s step) label(path string) string {
	name := strings.TrimPrefix(path, "curt/")
	if s.name != "" {
		name += " (" + s.name + ")"
	}
	return name
}
