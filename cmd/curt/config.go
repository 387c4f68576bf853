package main

import (
	"context"
	"fmt"
	"io"

	"curt/internal/config"
	"curt/internal/server"
)

// configCmd are the commands about the settings of serve. They take its flags.
type configCmd struct {
	Print configPrintCmd `cmd:"" help:"Print the settings in effect, and where each is set, as a file for --config."`
	Check configCheckCmd `cmd:"" help:"Check every setting and use each file, secret and address once."`
}

type configPrintCmd struct{ config.Flags }

// Run prints the settings. They are read as serve reads them, and need not be right.
func (c *configPrintCmd) Run(t terminal) error {
	text, err := c.TOML()
	if err != nil {
		return err
	}
	_, err = io.WriteString(t.out, text)
	return err
}

type configCheckCmd struct{ config.Flags }

// Run prints a line for each thing that was checked. One that is wrong makes the exit
// code 78; a warning is about what keeps no server from starting.
func (c *configCheckCmd) Run(ctx context.Context, t terminal) error {
	var wrong int
	for _, check := range server.Check(ctx, c.Config) {
		line := "ok    " + check.What
		switch {
		case check.Err != nil:
			wrong++
			line = fmt.Sprint("wrong ", c.Explain(check.Err))
		case check.Advice != "":
			line = "warn  " + check.What + ": " + check.Advice
		}
		if _, err := fmt.Fprintln(t.out, plain(line)); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return wrongSettings(wrong)
	}
	return nil
}

// wrongSettings is how many checks failed, each of which was told on its own line.
type wrongSettings int

func (n wrongSettings) Error() string { return fmt.Sprintf("wrong settings: %d", int(n)) }
