package movedata

import (
	"context"
	"errors"
	"fmt"
	"time"

	"curt/internal/cli"
	"curt/internal/clicks/ship"
	"curt/internal/config"
	"curt/internal/move"
	"curt/internal/move/back"
	"curt/internal/move/relay"
	"curt/internal/settings"
)

// Move is the command "curt move".
type Move struct {
	dataFolder

	To              string   `placeholder:"URL" help:"PostgreSQL database, postgres://user@host/database, or tables of DynamoDB, dynamodb://table?region=region: empty, or those of an interrupted move. PGPASSWORD may have the password."`
	From            string   `placeholder:"URL" help:"Move the links of this database or table, instead of a data folder; without --to fill an empty data folder, while no server uses it."`
	Accounts        string   `placeholder:"URL" env:"CURT_ACCOUNTS" help:"PostgreSQL database of accounts and statistics, where it is not that of the links: empty for a data folder with --to a table, the one that CURT_ACCOUNTS of the servers names for --from alone. PGPASSWORD may have the password."`
	Without         []string `placeholder:"NAME" help:"Servers over the DynamoDB table of --from that were killed and no longer exist; what they reserved of codes is left behind."`
	Analytics       string   `placeholder:"URLS" help:"With --to, of a data folder: ClickHouse for the statistics instead of the database, as CURT_ANALYTICS names it. With --from alone: where the statistics come back from."`
	Events          string   `placeholder:"URL" help:"With --to and --analytics: Kafka for the clicks since yesterday, as CURT_EVENTS names it."`
	LeaveStatistics bool     `help:"Leave the statistics where they are."`
}

// Run moves what a data folder has into a database while its server serves, and returns when the
// server has ended and its last clicks are counted. It is run again after an interruption. With
// --from and --to it moves links between databases; with --from alone it goes back, without servers.
func (c *Move) Run(ctx context.Context, t cli.Terminal) error {
	if err := c.check(); err != nil {
		return err
	}
	analytics, err := c.analytics()
	if err != nil {
		return err
	}
	bar := cli.NewProgress(t, 0)
	log := t.Logger("warn")
	progress := func(step string, done, total int64) {
		bar.Total = total
		bar.Show(time.Now(), done, fmt.Sprintf("%s: %d", step, done))
	}
	note := func(format string, args ...any) {
		bar.Clear()
		t.Note(format, args...)
	}
	folder := move.Config{Data: c.Data, To: c.To, Shown: config.Redact(c.To), Statistics: !c.LeaveStatistics, Analytics: analytics, Without: c.Without, Log: log, Progress: progress, Note: note}
	var r move.Result
	report := c.there
	switch {
	case c.From == "":
		if config.IsDynamoDB(c.To) {
			folder.Accounts = c.Accounts
		}
		r, err = move.Run(ctx, folder)
	case c.To == "":
		folder.To, folder.Accounts, report = c.From, c.Accounts, c.back
		r, err = back.Run(ctx, folder)
	default:
		report = c.between
		r, err = relay.Run(ctx, relay.Config{
			From: c.From, To: c.To, Shown: config.Redact(c.To), Without: c.Without, Log: log, Progress: progress, Note: note,
		})
	}
	bar.Clear()
	switch {
	case errors.Is(err, context.Canceled):
		return cli.ErrInterrupted
	case err != nil:
		return fmt.Errorf("move: %w", settings.OneLine(err))
	}
	_, err = fmt.Fprint(t.Out, report(r))
	return err
}

// check returns an error for URLs that say nothing, or too little.
func (c *Move) check() error {
	if c.To == "" && c.From == "" {
		return cli.UsageError("pass --to, --from or both")
	}
	tables := false
	for _, url := range []string{c.To, c.From} {
		if url != "" && !config.IsPostgres(url) && !config.IsDynamoDB(url) {
			return cli.UsageError("expected a database such as postgres://user@host/database, or a table such as dynamodb://table?region=region")
		}
		tables = tables || config.IsDynamoDB(url)
	}
	if tables && (c.To == "" || c.From == "") && !config.IsPostgres(c.Accounts) {
		return cli.UsageError("DynamoDB keeps no accounts: pass --accounts, or set CURT_ACCOUNTS")
	}
	return nil
}

// analytics is where clicks go instead of the database; nil = nowhere else.
func (c *Move) analytics() (*move.Analytics, error) {
	switch {
	case c.Analytics == "" && c.Events == "":
		return nil, nil //nolint:nilnil // there is none, which is no error
	case c.LeaveStatistics, c.Analytics == "", c.To != "" && c.From != "", (c.To == "") != (c.Events == ""):
		return nil, cli.UsageError("expected --to, --analytics and --events together, or --from and --analytics, without --leave-statistics")
	case !config.IsClickHouse(c.Analytics):
		return nil, cli.UsageError("--analytics: expected clickhouse://user@host:9000/database")
	}
	cfg := config.Config{Links: c.From, Analytics: c.Analytics, Events: c.Events}
	if c.To == "" {
		senders := func(ctx context.Context) ([]ship.Sender, error) { return settings.SendersOf(ctx, cfg) }
		return &move.Analytics{Stores: settings.ClickHouses(cfg, nil), Senders: senders}, nil
	}
	events, err := settings.Kafka(cfg)
	if err != nil {
		return nil, err
	}
	return &move.Analytics{Stores: settings.ClickHouses(cfg, nil), Events: events}, nil
}

// there is what was moved to a database.
func (c *Move) there(r move.Result) string {
	text := fmt.Sprintf("moved %s to %s: %d links, and %d rows of accounts and lists\n", cli.Plain(c.Data), cli.Plain(config.Redact(c.To)), r.Links, r.Rows)
	if r.Digest != "" {
		text += "both sides had the digest " + r.Digest + "\n"
	}
	if r.Frozen > 0 {
		text += fmt.Sprintf("writes were frozen for %s\n", r.Frozen.Round(time.Millisecond))
	}
	if c.Events != "" {
		return text + fmt.Sprintf("%d requests since yesterday were sent to Kafka, those of days before are in ClickHouse; the old files are in moved-files of the data folder\n", r.Clicks)
	}
	return text + fmt.Sprintf("%d requests were counted from the click log after the switch; the old files are in moved-files of the data folder\n", r.Clicks)
}

// between is what was moved from one store of links to another.
func (c *Move) between(r move.Result) string {
	text := fmt.Sprintf("moved %d links from %s to %s\n", r.Links, cli.Plain(config.Redact(c.From)), cli.Plain(config.Redact(c.To)))
	if r.Digest != "" {
		text += "both sides had the digest " + r.Digest + "\n"
	}
	if r.Frozen > 0 {
		text += fmt.Sprintf("writes were frozen for %s\n", r.Frozen.Round(time.Millisecond))
	}
	return text
}

// back is what was moved to a folder.
func (c *Move) back(r move.Result) string {
	return fmt.Sprintf("moved %s to %s: %d links, and %d rows of accounts and lists; both sides have the digest %s\n",
		cli.Plain(config.Redact(c.From)), cli.Plain(c.Data), r.Links, r.Rows, r.Digest)
}
