package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"curt/internal/config"
	"curt/internal/server"
	"curt/internal/telemetry"
)

type serveCmd struct {
	config.Flags

	Force bool `help:"Start although the write-ahead log of the links is damaged, and give up what it lost."`
}

// Run starts the server and returns when ctx has ended and everything is on disk. A
// start that ctx interrupts is no failure.
func (c *serveCmd) Run(ctx context.Context, t terminal) error {
	if err := c.Wrong(); err != nil {
		return err
	}
	log := newLogger(t, c.LogLevel)
	telemetry.LogSDK(log)
	reload, done := c.hangups(t)
	defer done()
	s, err := server.New(ctx, c.Config, server.Options{Version: version, Log: log, Reload: reload, Force: c.Force})
	switch {
	case err == nil:
		return s.Run(ctx)
	case ctx.Err() != nil && !errors.As(err, new(*config.Error)):
		// Whatever was interrupted says so in its own way: a driver has errors of its own.
		log.InfoContext(context.WithoutCancel(ctx), "stopped while starting", slog.Any("err", err))
		return nil
	}
	return fmt.Errorf("start: %w", c.Explain(err))
}

// hangups are the SIGHUPs that ask to read files anew, until done is called. On a
// terminal, where there is nothing to read, SIGHUP stays what ends the programs of a
// window that closes; a service must not die of a reload.
func (c *serveCmd) hangups(t terminal) (asked <-chan os.Signal, done func()) {
	if lists := len(c.Blocklists) + len(c.Allowlists) + len(c.ReservedWords) + len(c.RefusedWords); isTerminal(t.err) && lists == 0 && c.Brands+c.ShortenersFile == "" {
		return nil, func() {}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	return signals, func() { signal.Stop(signals) }
}

// newLogger writes lines for people on a terminal and JSON elsewhere.
func newLogger(t terminal, level string) *slog.Logger {
	options := &slog.HandlerOptions{}
	var l slog.Level
	if l.UnmarshalText([]byte(level)) == nil {
		options.Level = l
	}
	if isTerminal(t.err) {
		return slog.New(slog.NewTextHandler(t.err, options))
	}
	return slog.New(slog.NewJSONHandler(t.err, options))
}
