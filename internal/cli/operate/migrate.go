package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/dynamodb"
	"curt/internal/backend/kafka"
	"curt/internal/backend/postgres"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/cli"
	"curt/internal/codegen"
	"curt/internal/config"
	"curt/internal/settings"
)

// Migrate is the command "curt migrate".
type Migrate struct {
	config.Flags

	Partitions int           `placeholder:"N" help:"Partitions of a new topic: 12, the default, for some 50,000 clicks per second, 128 for ten times as many. Cannot be changed later."`
	Retention  time.Duration `placeholder:"TIME" help:"Retention of a new topic, which bounds how long workers may be down. Default: 168h."`
	Restored   bool          `help:"After a restore of the database or the tables of links: skip codes that may have been issued since, and have the change log of DynamoDB read again. No server may run; one that knows of later codes does not start without it."`
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

// migrate brings the schema of PostgreSQL up to date, creates the tables of DynamoDB, and the topics of clicks, of its dead letters
// and of created links, and the tables of ClickHouse. It returns what it did also with an error.
func (c *Migrate) migrate(ctx context.Context) (done []string, err error) {
	if done, err = c.schemas(ctx); err != nil {
		return done, err
	}
	if c.Restored && !config.IsDynamoDB(c.Links) {
		line, err := c.skipRestored(ctx, time.Now())
		if err != nil {
			return done, err
		}
		done = append(done, line)
	}
	if config.IsDynamoDB(c.Links) {
		line, err := c.dynamoTables(ctx)
		if done = append(done, line...); err != nil {
			return done, err
		}
	}
	switch {
	case c.Events == "" && !c.Queues():
		if len(done) == 0 {
			done = append(done, "nothing to do: CURT_EVENTS is unset, and the server migrates its files itself")
		}
		return done, nil
	case c.Partitions < 0 || c.Partitions > maxPartitions:
		return done, &config.Error{Setting: "--partitions", Value: fmt.Sprint(c.Partitions), Want: fmt.Sprintf("expected 1 to %d", maxPartitions)}
	case c.Retention != 0 && (c.Retention < time.Hour || c.Retention > maxRetention):
		return done, &config.Error{Setting: "--retention", Value: c.Retention.String(), Want: "expected 1h to 8760h"}
	}
	line, err := c.queue(ctx)
	if done = append(done, line...); err != nil || c.Events == "" {
		return done, err
	}
	topic, err := settings.Kafka(c.Config)
	if err != nil {
		return done, err
	}
	topics, err := kafka.Migrate(ctx, topic, kafka.Topic{Partitions: c.Partitions, Retention: c.Retention})
	if err != nil {
		return done, settings.OneLine(err)
	}
	done = append(done, migrated(topics)...)
	created, err := kafka.MigrateCreated(ctx, topic, c.Retention)
	if err != nil {
		return done, settings.OneLine(err)
	}
	done = append(done, migrated([]kafka.Migrated{{Topic: topic.Created().Topic, New: created}})...)
	if !config.IsClickHouse(c.Analytics) {
		return done, nil
	}
	tables, err := c.tables(ctx)
	return append(done, tables...), err
}

// schemas brings the databases of links and accounts up to date, and runs the contract migrations there.
func (c *Migrate) schemas(ctx context.Context) (done []string, err error) {
	for _, one := range []struct{ setting, url string }{{"CURT_LINKS", c.Links}, {"CURT_ACCOUNTS", c.Accounts}} {
		if !config.IsPostgres(one.url) {
			continue
		}
		older, err := pgdb.Expand(ctx, one.url)
		if err == nil {
			err = pgdb.Contract(ctx, one.url, pgdb.Contracts())
		}
		if err != nil {
			return done, settings.WrongDatabase(one.setting, one.url, err)
		}
		what := "is up to date"
		if older {
			what = "was brought up to date"
		}
		done = append(done, "the schema of "+one.setting+" "+what)
	}
	return done, nil
}

// queue creates the topic of links that are to be written, and that of their dead letters. It warns of one that may lose links.
func (c *Migrate) queue(ctx context.Context) (done []string, err error) {
	if !c.Queues() {
		return nil, nil
	}
	topic, err := settings.Queue(c.Config)
	if err != nil {
		return nil, err
	}
	topics, err := kafka.Migrate(ctx, topic, kafka.Topic{Partitions: c.Partitions, Retention: c.Retention})
	if err != nil {
		return nil, settings.OneLine(err)
	}
	done = migrated(topics)
	switch err := topic.Safe(ctx); {
	case errors.Is(err, kafka.ErrUnsafe) && c.WritesLoss:
		done = append(done, fmt.Sprintf("warning: %v, and %s; %s", settings.OneLine(err), settings.QueueLoses, settings.SafeQueue))
	case errors.Is(err, kafka.ErrUnsafe):
		done = append(done, fmt.Sprintf("warning: %v, so that no server with the role api starts; %s", settings.OneLine(err), settings.AllowQueue))
	case err != nil:
		return done, settings.OneLine(err)
	}
	return done, nil
}

// tables brings those of each ClickHouse up to date. One that fails does not keep the others from theirs; the
// error is that of the first.
func (c *Migrate) tables(ctx context.Context) (done []string, failed error) {
	all := settings.ClickHouses(c.Config, nil)
	for _, one := range all {
		store, err := clickhouse.Open(ctx, one)
		if err == nil {
			err = store.Close()
		}
		switch at := clickdb.AddressOf(one.URL); {
		case err != nil && failed == nil:
			if failed = settings.WrongClickHouse(c.Config, err); len(all) > 1 && !errors.As(failed, new(*config.Error)) {
				failed = fmt.Errorf("ClickHouse %s: %w", at, failed)
			}
		case err != nil:
		case len(all) > 1:
			done = append(done, "the ClickHouse tables of "+at+" are up to date")
		default:
			done = append(done, "the ClickHouse tables are up to date")
		}
	}
	return done, failed
}

// skipRestored skips the codes that may have been issued since the backup that the link store was restored from.
func (c *Migrate) skipRestored(ctx context.Context, now time.Time) (done string, err error) {
	leases, err := c.openLeases(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, leases.Close()) }()
	written, err := codegen.SkipRestored(ctx, leases, now)
	switch {
	case err != nil:
		return "", settings.OneLine(err)
	case written.IsZero():
		return "skipped codes: nothing says when the restored link store was last written, so 1/64 of each length", nil
	default:
		return "skipped codes that may have been issued since " + written.Format(time.RFC3339) + ", the newest write of the restored link store", nil
	}
}

// leaseStore is a link store that this command has opened.
type leaseStore interface {
	codegen.Leaser
	io.Closer
}

// openLeases opens the link store that servers share.
func (c *Migrate) openLeases(ctx context.Context) (leaseStore, error) {
	if !config.IsPostgres(c.Links) {
		return nil, &config.Error{Setting: "CURT_LINKS", Value: config.Redact(c.Links), Want: "--restored is for links in a database; curt restore skips codes itself"}
	}
	links, err := postgres.OpenLinks(ctx, postgres.LinksConfig{URL: c.Links})
	if err != nil {
		return nil, settings.WrongDatabase("CURT_LINKS", c.Links, err)
	}
	return links, nil
}

// dynamoTables creates the tables of DynamoDB.
func (c *Migrate) dynamoTables(ctx context.Context) ([]string, error) {
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

func migrated(topics []kafka.Migrated) (done []string) {
	for _, one := range topics {
		if one.New {
			done = append(done, "created topic "+one.Topic)
		} else {
			done = append(done, "topic "+one.Topic+" exists")
		}
	}
	return done
}
