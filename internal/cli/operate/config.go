package operate

import (
	"context"
	"fmt"
	"io"

	"curt/internal/cli"
	"curt/internal/config"
	"curt/internal/settings"
)

// PrintConfig is the command "curt config print".
type PrintConfig struct{ config.Flags }

// Run prints the settings. They are read as serve reads them, and may be invalid.
func (c *PrintConfig) Run(t cli.Terminal) error {
	text, err := c.TOML()
	if err != nil {
		return err
	}
	_, err = io.WriteString(t.Out, text)
	return err
}

// CheckConfig is the command "curt config check".
type CheckConfig struct{ config.Flags }

// Run prints a line per check. An invalid setting makes the exit code 78; a server starts in
// spite of a warning.
func (c *CheckConfig) Run(ctx context.Context, t cli.Terminal) error {
	var wrong int
	for _, check := range settings.Check(ctx, c.Config) {
		line := "ok    " + check.What
		switch {
		case check.Err != nil:
			wrong++
			if line = fmt.Sprint("wrong ", c.Explain(check.Err)); check.Advice != "" {
				line += "; " + check.Advice
			}
		case check.Advice != "":
			line = "warn  " + check.What + ": " + check.Advice
		}
		if _, err := fmt.Fprintln(t.Out, cli.Plain(line)); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return cli.WithCode(fmt.Errorf("invalid settings: %d", wrong), cli.ExitConfig)
	}
	return nil
}
