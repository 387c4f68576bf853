package main

import (
	"context"
	"fmt"
	"time"

	"curt/internal/config"
	"curt/internal/server"
)

type migrateCmd struct {
	config.Flags

	Partitions int           `placeholder:"N" help:"Partitions of a topic that is made: 12, the default, for some 50,000 clicks a second, 128 for ten times as many. They cannot be changed later."`
	Retention  time.Duration `placeholder:"TIME" help:"How long Kafka keeps clicks of a topic that is made, which is how long workers may be away. Default: 168h."`
}

// Run makes what servers with these settings need and do not make for themselves, and says
// what it found. It may run again at any time.
func (c *migrateCmd) Run(ctx context.Context, t terminal) error {
	if err := c.Wrong(); err != nil {
		return err
	}
	done, err := server.Migrate(ctx, c.Config, server.Topic{Partitions: c.Partitions, Retention: c.Retention})
	for _, line := range done {
		if _, err := fmt.Fprintln(t.out, plain(line)); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", c.Explain(err))
	}
	return nil
}
