package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/config"
	"curt/internal/doctor"
)

type doctorCmd struct {
	config.Flags

	All     bool          `help:"Count the whole click log again, compare every index with its table, and read journal and links to the end."`
	Recount int           `default:"3" placeholder:"DAYS" help:"How many days of statistics are counted again, today's among them."`
	Within  time.Duration `default:"1m" placeholder:"TIME" help:"How long the journal is read at most, and how long the links. 0: to the end."`
	JSON    bool          `name:"json" help:"Print a JSON object for each finding."`
}

// What doctor ends with.
const (
	exitWarned = 1
	exitIll    = 2
)

// errFindings ends a doctor whose findings have been printed.
var errFindings = errors.New("there are findings")

// Run prints a line for each finding, and below those that are not ok what to do.
func (c *doctorCmd) Run(ctx context.Context, t terminal) error {
	if c.Within < 0 {
		return usageError("--within: want a time, as 10m, or 0 for no bound")
	}
	bar := newProgress(t, 0)
	var counts [doctor.Failure + 1]int
	var broken error
	err := doctor.Examine(ctx, doctor.Options{
		Config: c.Config, Now: time.Now(), All: c.All, Days: c.Recount, Within: c.Within,
		Progress: func(check string, done, all int64) {
			bar.total = all
			bar.show(time.Now(), done, check)
		},
		Report: func(f doctor.Finding) {
			bar.clear()
			counts[f.Level]++
			if err := c.print(t, f); err != nil {
				broken = err
			}
		},
	})
	bar.clear()
	switch {
	case err != nil:
		return err
	case broken != nil:
		return fmt.Errorf("write: %w", broken)
	}
	t.note("%d ok, %d warnings, %d failures", counts[doctor.OK], counts[doctor.Warning], counts[doctor.Failure])
	switch {
	case counts[doctor.Failure] > 0:
		return saidError{coded{errFindings, exitIll}}
	case counts[doctor.Warning] > 0:
		return saidError{coded{errFindings, exitWarned}}
	}
	return nil
}

func (c *doctorCmd) print(t terminal, f doctor.Finding) error {
	if c.JSON {
		return printJSON(t.out, struct {
			Check  string `json:"check"`
			Level  string `json:"level"`
			Text   string `json:"text"`
			Advice string `json:"advice,omitempty"`
		}{f.Check, f.Level.String(), f.Text, f.Advice})
	}
	_, err := fmt.Fprintf(t.out, "%-8s %s: %s\n", f.Level, f.Check, plain(f.Text))
	if f.Advice != "" && err == nil {
		_, err = fmt.Fprintf(t.out, "%8s what to do: %s\n", "", plain(f.Advice))
	}
	return err
}
