// Package operate has the commands for operators: run a server, check its settings and its
// health, diagnose an installation, and correct statistics in ClickHouse. Their flags are the
// settings of the server.
//
// Read serve.go first.
package operate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"curt/internal/cli"
	"curt/internal/config"
	"curt/internal/server"
	"curt/internal/telemetry"
)

// Serve is the command "curt serve".
type Serve struct {
	config.Flags

	Force bool `help:"Start even if the write-ahead log of the links is damaged, without the lost transactions."`
}

// Run starts the server and returns when ctx has ended and everything is on disk. An
// interrupted start is not a failure.
func (c *Serve) Run(ctx context.Context, t cli.Terminal, version cli.Version) error {
	if err := c.Wrong(); err != nil {
		return err
	}
	log := t.Logger(c.LogLevel)
	telemetry.LogSDK(log)
	reload, done := c.hangups(t)
	defer done()
	s, err := server.New(ctx, c.Config, server.Options{Version: string(version), Log: log, Reload: reload, Force: c.Force})
	switch {
	case err == nil:
		return s.Run(ctx)
	case ctx.Err() != nil && !errors.As(err, new(*config.Error)):
		// The error does not matter: drivers have their own for an interrupt.
		log.InfoContext(context.WithoutCancel(ctx), "stopped while starting", slog.Any("err", err))
		return nil
	}
	return fmt.Errorf("start: %w", c.Explain(err))
}

// hangups are the SIGHUPs that reload files, until done is called. On a terminal without files
// to reload, SIGHUP keeps its default and ends the process with the window; a service must not
// end because of a reload.
func (c *Serve) hangups(t cli.Terminal) (asked <-chan os.Signal, done func()) {
	if lists := len(c.Blocklists) + len(c.Allowlists) + len(c.ReservedWords) + len(c.RefusedWords); cli.IsTerminal(t.Err) && lists == 0 && c.Brands+c.ShortenersFile == "" {
		return nil, func() {}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	return signals, func() { signal.Stop(signals) }
}
