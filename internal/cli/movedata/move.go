package movedata

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"curt/internal/cli"
	"curt/internal/config"
	"curt/internal/move"
	"curt/internal/settings"
)

// Move is the command "curt move".
type Move struct {
	dataFolder

	To              string `placeholder:"URL" xor:"direction" required:"" help:"PostgreSQL database, postgres://user@host/database: empty, or that of an interrupted move. PGPASSWORD may have the password."`
	From            string `placeholder:"URL" xor:"direction" required:"" help:"Instead: fill an empty data folder from this database, which no server uses."`
	Analytics       string `placeholder:"URLS" help:"With --to: ClickHouse for the statistics instead of the database, as CURT_ANALYTICS names it."`
	Events          string `placeholder:"URL" help:"With --analytics: Kafka for the clicks since yesterday, as CURT_EVENTS names it."`
	LeaveStatistics bool   `help:"Leave the statistics where they are."`
}

// Run moves what a data folder has into a database while its server serves, and returns when the
// server has ended and its last clicks are counted. It is run again after an interruption. With
// --from it goes the other way, without servers.
func (c *Move) Run(ctx context.Context, t cli.Terminal) error {
	run, url, report := move.Run, c.To, c.there
	if c.From != "" {
		run, url, report = move.Back, c.From, c.back
	}
	if !config.IsPostgres(url) {
		return cli.UsageError("expected a database such as postgres://user@host/database")
	}
	analytics, err := c.analytics()
	if err != nil {
		return err
	}
	bar := cli.NewProgress(t, 0)
	r, err := run(ctx, move.Config{
		Data: c.Data, To: url, Shown: config.Redact(url), Statistics: !c.LeaveStatistics, Analytics: analytics,
		Log: slog.New(slog.NewTextHandler(t.Err, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Progress: func(step string, done, total int64) {
			bar.Total = total
			bar.Show(time.Now(), done, fmt.Sprintf("%s: %d", step, done))
		},
		Note: func(format string, args ...any) {
			bar.Clear()
			t.Note(format, args...)
		},
	})
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

// analytics is where clicks go instead of the database; nil = nowhere else.
func (c *Move) analytics() (*move.Analytics, error) {
	switch {
	case c.Analytics == "" && c.Events == "":
		return nil, nil //nolint:nilnil // there is none, which is no error
	case c.Analytics == "" || c.Events == "" || c.To == "" || c.LeaveStatistics:
		return nil, cli.UsageError("expected --to, --analytics and --events together, without --leave-statistics")
	case !config.IsClickHouse(c.Analytics):
		return nil, cli.UsageError("--analytics: expected clickhouse://user@host:9000/database")
	}
	cfg := config.Config{Analytics: c.Analytics, Events: c.Events}
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

// back is what was moved to a folder.
func (c *Move) back(r move.Result) string {
	return fmt.Sprintf("moved %s to %s: %d links, and %d rows of accounts and lists; both sides have the digest %s\n",
		cli.Plain(config.Redact(c.From)), cli.Plain(c.Data), r.Links, r.Rows, r.Digest)
}
