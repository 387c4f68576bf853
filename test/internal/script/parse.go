package script

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Script is one parsed text.
type Script struct {
	Settings []string // CURT_X=value
	Cases    []Case
}

// Case is a titled sequence of exchanges on one connection.
type Case struct {
	Title string
	Line  int
	Steps []Step
}

// Step is one request and what must come back.
type Step struct {
	Line    int
	Request []string // lines after "> "
	Raw     string   // instead of Request: exact bytes
	Again   time.Duration
	Times   int
	Connect bool
	Pause   time.Duration
	Want    []Want
}

// Want is one expectation, still with its variables.
type Want struct {
	Line int
	Text string // after "< "
}

// Parse reads a script. Errors name the line.
func Parse(text string) (Script, error) {
	p := parser{}
	for i, line := range strings.Split(text, "\n") {
		p.line = i + 1
		if err := p.take(strings.TrimRight(line, " \t\r")); err != nil {
			return Script{}, fmt.Errorf("line %d: %w", p.line, err)
		}
	}
	p.endStep()
	p.endCase()
	for _, c := range p.script.Cases {
		for _, s := range c.Steps {
			if len(s.Want) == 0 {
				return Script{}, fmt.Errorf("line %d: a request that nothing is expected of proves nothing", s.Line)
			}
		}
		if len(c.Steps) == 0 {
			return Script{}, fmt.Errorf("line %d: case %q has no request", c.Line, c.Title)
		}
	}
	return p.script, nil
}

type parser struct {
	line   int
	script Script
	open   *Case
	step   *Step // being read: its request, then its expectations
}

func (p *parser) take(line string) error {
	kind, rest, _ := strings.Cut(line, " ")
	switch kind {
	case "", "#":
		return nil
	case "with":
		if p.open != nil {
			return fmt.Errorf("settings belong before the first case")
		}
		p.script.Settings = append(p.script.Settings, rest)
		return nil
	case "==":
		p.endStep()
		p.endCase()
		p.open = &Case{Title: rest, Line: p.line}
		return nil
	}
	if p.open == nil {
		return fmt.Errorf("%q before the first case", line)
	}
	switch kind {
	case "!":
		return p.modify(p.request(), rest)
	case ">":
		s := p.request()
		s.Request = append(s.Request, rest)
		return nil
	case ">>":
		raw, err := strconv.Unquote(rest)
		if err != nil {
			return fmt.Errorf("%s is not a Go string", rest)
		}
		p.request().Raw += raw
		return nil
	case "<":
		if p.step == nil || (len(p.step.Request) == 0 && p.step.Raw == "") {
			return fmt.Errorf("an expectation without a request")
		}
		p.step.Want = append(p.step.Want, Want{Line: p.line, Text: rest})
		return nil
	}
	return fmt.Errorf("unknown kind of line %q", kind)
}

// request returns the step whose request is being read, a new one if the last step
// already has expectations.
func (p *parser) request() *Step {
	if p.step != nil && len(p.step.Want) > 0 {
		p.endStep()
	}
	if p.step == nil {
		p.step = &Step{Line: p.line, Times: 1}
	}
	return p.step
}

func (p *parser) modify(s *Step, text string) error {
	word, arg, _ := strings.Cut(text, " ")
	var err error
	switch word {
	case "again":
		s.Again, err = time.ParseDuration(arg)
	case "times":
		s.Times, err = strconv.Atoi(arg)
	case "connect":
		s.Connect = true
	case "pause":
		s.Pause, err = time.ParseDuration(arg)
	default:
		return fmt.Errorf("unknown modifier %q", word)
	}
	if err != nil || s.Again < 0 || s.Pause < 0 || s.Times < 1 {
		return fmt.Errorf("! %s: bad argument", text)
	}
	return nil
}

func (p *parser) endStep() {
	if p.step != nil {
		p.open.Steps = append(p.open.Steps, *p.step)
		p.step = nil
	}
}

func (p *parser) endCase() {
	if p.open != nil {
		p.script.Cases = append(p.script.Cases, *p.open)
		p.open = nil
	}
}
