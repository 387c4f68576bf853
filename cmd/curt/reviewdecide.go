package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"curt.example/client"
)

// maxDecisions is what the API takes in one request.
const maxDecisions = 100

type reviewDecideCmd struct {
	api

	Codes  []string `arg:"" optional:"" name:"code" help:"Codes of links, or their short URLs; without one, or with -, a line of standard input for each: CODE, or CODE, tab, SAFETY, tab, REASON."`
	Safety string   `help:"clean, warn, quarantined, blocked or legal."`
	Reason string   `help:"Why, for the journal."`
}

// Run decides about what is named, 100 links in a request. One that fails does not save
// the others.
func (c *reviewDecideCmd) Run(ctx context.Context, t terminal) error {
	var decisions []client.Decision
	var err error
	switch {
	case len(c.Codes) > 0 && c.Codes[0] != "-":
		for _, name := range c.Codes {
			var d client.Decision
			if d, err = c.decision(name); err != nil {
				return err
			}
			decisions = append(decisions, d)
		}
	case isTerminal(t.in):
		return usageError("expected a code")
	default:
		if decisions, err = c.read(t.in); err != nil {
			return err
		}
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	failed, all := 0, len(decisions)
	for len(decisions) > 0 {
		if ctx.Err() != nil {
			return errInterrupted
		}
		n := min(len(decisions), maxDecisions)
		results, err := api.DecideMany(ctx, decisions[:n])
		if err != nil {
			return fmt.Errorf("decide: %w", err)
		}
		for i := range results {
			if !sayDecided(t, decisions[i].Code, &results[i]) {
				failed++
			}
		}
		decisions = decisions[n:]
	}
	if failed > 0 {
		return saidError{fmt.Errorf("%d of %d failed", failed, all)}
	}
	return nil
}

// decision reads what is decided about one link: its name, and what it brings with it or
// the flags say.
func (c *reviewDecideCmd) decision(line string) (d client.Decision, err error) {
	parts := strings.SplitN(line, "\t", 3)
	d.Safety, d.Reason = c.Safety, c.Reason
	if len(parts) > 1 {
		d.Safety = strings.TrimSpace(parts[1])
	}
	if len(parts) > 2 {
		d.Reason = strings.TrimSpace(parts[2])
	}
	switch {
	case d.Safety == "":
		return d, usageError("say --safety: clean, warn, quarantined, blocked or legal")
	case !slices.Contains([]string{"clean", "warn", "quarantined", "blocked", "legal"}, d.Safety):
		return d, usageError(fmt.Sprintf("%q is no safety: want clean, warn, quarantined, blocked or legal", d.Safety))
	case d.Reason == "":
		return d, usageError("say --reason: it stands in the journal")
	}
	d.Code, d.Domain, err = target(strings.TrimSpace(parts[0]))
	return d, err
}

// read reads all lines before anything is decided, so that a mistake in one of them
// leaves everything as it was.
func (c *reviewDecideCmd) read(in io.Reader) (decisions []client.Decision, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if strings.TrimSpace(line) == "" {
			continue
		}
		d, err := c.decision(line)
		if err != nil {
			return nil, usageError(fmt.Sprintf("line %d: %v", n, err))
		}
		decisions = append(decisions, d)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the decisions: %w", err)
	}
	return decisions, nil
}

// sayDecided prints what became of a decision and reports whether it was made.
func sayDecided(t terminal, code string, d *client.Decided) bool {
	switch {
	case d.Problem != nil:
		t.complain(fmt.Errorf("decide about %s: %w", code, d.Problem))
		return false
	case d.Link == nil:
		t.complain(fmt.Errorf("decide about %s: %w", code, errors.New("the answer says nothing about it")))
		return false
	}
	if b := d.HeldBy; b != nil {
		t.note("%s %s: a ban stands above this decision; curt ban lift %d ends that of %s:%s", d.Link.Safety, d.Link.ShortURL, b.Sequence, b.Kind, b.Name)
		return true
	}
	t.note("%s %s", d.Link.Safety, d.Link.ShortURL)
	return true
}

type reviewAnswerCmd struct {
	reviewed

	Safety string `required:"" help:"What stands from now on: clean, warn, quarantined, blocked or legal."`
	Text   string `required:"" help:"The answer, for the owner to read."`
}

// Run answers an appeal.
func (c *reviewAnswerCmd) Run(ctx context.Context, t terminal) error {
	api, code, where, err := c.reach()
	if err != nil {
		return err
	}
	done, err := api.AnswerAppeal(ctx, code, c.Safety, c.Text, where)
	if err != nil {
		return fmt.Errorf("answer the appeal for %s: %w", code, err)
	}
	if !sayDecided(t, code, &done) {
		return saidError{errors.New("nothing was answered")}
	}
	return nil
}
