package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/cli"
	"curt/internal/config"
	"curt/internal/doctor"
)

// Doctor is the command "curt doctor".
type Doctor struct {
	config.Flags

	All     bool          `help:"Recount the whole click log, compare every index with its table, and read journal and links to the end."`
	Recount int           `default:"3" placeholder:"DAYS" help:"Days of statistics to recount, including today."`
	Within  time.Duration `default:"1m" placeholder:"TIME" help:"Time limit for reading the journal, and for reading the links. 0: none."`
	JSON    bool          `name:"json" help:"Print each finding as a JSON object."`
}

// The exit codes of doctor.
const (
	exitWarned = 1
	exitIll    = 2
)

// errFindings ends a diagnosis whose findings have been printed.
var errFindings = errors.New("there are findings")

// Run prints a line per finding, and advice below those that are not ok.
func (c *Doctor) Run(ctx context.Context, t cli.Terminal) error {
	if c.Within < 0 {
		return cli.UsageError("--within: expected a duration such as 10m, or 0 for no limit")
	}
	bar := cli.NewProgress(t, 0)
	var counts [doctor.Failure + 1]int
	var broken error
	err := doctor.Examine(ctx, doctor.Options{
		Config: c.Config, Now: time.Now(), All: c.All, Days: c.Recount, Within: c.Within,
		Progress: func(check string, done, all int64) {
			bar.Total = all
			bar.Show(time.Now(), done, check)
		},
		Report: func(f doctor.Finding) {
			bar.Clear()
			counts[f.Level]++
			if err := c.print(t, f); err != nil {
				broken = err
			}
		},
	})
	bar.Clear()
	switch {
	case err != nil:
		return err
	case broken != nil:
		return fmt.Errorf("write: %w", broken)
	}
	t.Note("ok: %d, warnings: %d, failures: %d", counts[doctor.OK], counts[doctor.Warning], counts[doctor.Failure])
	switch {
	case counts[doctor.Failure] > 0:
		return cli.Reported(cli.WithCode(errFindings, exitIll))
	case counts[doctor.Warning] > 0:
		return cli.Reported(cli.WithCode(errFindings, exitWarned))
	}
	return nil
}

func (c *Doctor) print(t cli.Terminal, f doctor.Finding) error {
	if c.JSON {
		return cli.PrintJSON(t.Out, struct {
			Check  string `json:"check"`
			Level  string `json:"level"`
			Text   string `json:"text"`
			Advice string `json:"advice,omitempty"`
		}{f.Check, f.Level.String(), f.Text, f.Advice})
	}
	_, err := fmt.Fprintf(t.Out, "%-8s %s: %s\n", f.Level, f.Check, cli.Plain(f.Text))
	if f.Advice != "" && err == nil {
		_, err = fmt.Fprintf(t.Out, "%8s what to do: %s\n", "", cli.Plain(f.Advice))
	}
	return err
}
