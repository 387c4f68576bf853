package operate

import (
	"context"
	"fmt"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/dynamodb"
	"curt/internal/backend/kafka"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/cli"
	"curt/internal/config"
	"curt/internal/settings"
)

// Migrate is the command "curt migrate".
type Migrate struct {
	config.Flags

	Partitions int           `placeholder:"N" help:"Partitions of a new topic: 12, the default, for some 50,000 clicks per second, 128 for ten times as many. Cannot be changed later."`
	Restored   bool          `help:"The tables of CURT_LINKS=dynamodb://… were restored from a backup: skip the ids that were leased since, and have the change log read again. Servers refuse to start on such tables before."`
	Retention  time.Duration `placeholder:"TIME" help:"Retention of a new topic, which bounds how long workers may be down. Default: 168h."`
}

// Bounds of a topic. Kafka allows more partitions, which have no use here.
const (
	maxPartitions = 1024
	maxRetention  = 365 * 24 * time.Hour
)

// Run creates topics and tables that servers with these settings need and do not create
// themselves, and prints what it did. It is idempotent.
func (c *Migrate) Run(ctx context.Context, t cli.Terminal) error {
	if err := c.Wrong(); err != nil {
		return err
	}
	done, err := c.migrate(ctx)
	for _, line := range done {
		if _, err := fmt.Fprintln(t.Out, cli.Plain(line)); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("migrate: %w", c.Explain(err))
	}
	return nil
}

// migrate runs the contract migrations of PostgreSQL, creates the tables of DynamoDB, and the topics of clicks, of its dead letters
// and of created links, and the tables of ClickHouse. It returns what it did also with an error.
func (c *Migrate) migrate(ctx context.Context) (done []string, err error) {
	for _, url := range []string{c.Links, c.Accounts} {
		if !config.IsPostgres(url) {
			continue
		}
		if err := pgdb.Contract(ctx, url, pgdb.Contracts()); err != nil {
			return nil, settings.OneLine(err)
		}
	}
	switch {
	case config.IsDynamoDB(c.Links):
		if done, err = c.tables(ctx); err != nil || c.Events == "" {
			return done, err
		}
	case c.Restored:
		return nil, &config.Error{Setting: "--restored", Value: "true", Want: "only for CURT_LINKS=dynamodb://…; restores of other stores are noticed"}
	case c.Events == "":
		return []string{"nothing to do: CURT_EVENTS is unset, and servers migrate their databases themselves"}, nil
	}
	switch {
	case c.Partitions < 0 || c.Partitions > maxPartitions:
		return done, &config.Error{Setting: "--partitions", Value: fmt.Sprint(c.Partitions), Want: fmt.Sprintf("expected 1 to %d", maxPartitions)}
	case c.Retention != 0 && (c.Retention < time.Hour || c.Retention > maxRetention):
		return done, &config.Error{Setting: "--retention", Value: c.Retention.String(), Want: "expected 1h to 8760h"}
	}
	topic, err := settings.Kafka(c.Config)
	if err != nil {
		return done, err
	}
	created, err := kafka.Migrate(ctx, topic, kafka.Topic{Partitions: c.Partitions, Retention: c.Retention})
	if err != nil {
		return done, settings.OneLine(err)
	}
	done = append(done, migrated(topic.Topic, created))
	if created, err = kafka.MigrateCreated(ctx, topic, c.Retention); err != nil {
		return done, settings.OneLine(err)
	}
	done = append(done, migrated(topic.Created().Topic, created))
	if !config.IsClickHouse(c.Analytics) {
		return done, nil
	}
	for _, one := range settings.ClickHouses(c.Config, nil) {
		store, err := clickhouse.Open(ctx, one)
		if err != nil {
			return done, settings.WrongClickHouse(c.Config, err)
		}
		if err := store.Close(); err != nil {
			return done, err
		}
	}
	return append(done, "the ClickHouse tables are up to date"), nil
}

// tables creates those of DynamoDB.
func (c *Migrate) tables(ctx context.Context) ([]string, error) {
	at, err := settings.Tables(c.Config)
	if err != nil {
		return nil, err
	}
	done, err := dynamodb.Migrate(ctx, at, c.Restored)
	if err != nil {
		err = settings.WrongTables(c.Config, err)
	}
	return done, err
}

func migrated(topic string, created bool) string {
	if created {
		return "created topic " + topic
	}
	return "topic " + topic + " exists"
}
