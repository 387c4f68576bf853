package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/reconcile"
	"curt/internal/cli"
	"curt/internal/clicks/ship"
	"curt/internal/config"
	"curt/internal/settings"
	"curt/internal/worker"
)

// ofHours selects hours.
type ofHours struct {
	Hour  string `placeholder:"DATE" help:"The first hour, as 2026-01-31T12:00:00Z. Default: the last complete hour."`
	Hours int    `default:"1" help:"Number of hours."`
}

// hours returns their beginnings.
func (c *ofHours) hours(now time.Time) (begin []time.Time, err error) {
	if c.Hours < 1 || c.Hours > 31*24 {
		return nil, cli.UsageError("--hours: expected 1 to 744")
	}
	first := now.UTC().Truncate(time.Hour).Add(-time.Hour)
	if c.Hour != "" {
		if first, err = cli.ParseTime(c.Hour); err != nil {
			return nil, cli.UsageError(fmt.Sprintf("--hour: %v", err))
		}
	}
	first = first.UTC().Truncate(time.Hour)
	for i := range c.Hours {
		begin = append(begin, first.Add(time.Duration(i)*time.Hour))
	}
	return begin, nil
}

// VerifyClicks is the command "curt clicks verify".
type VerifyClicks struct {
	config.Flags
	cli.Format
	ofHours
	ofReplica

	Kafka bool `name:"kafka" negatable:"" default:"true" help:"Also compare the clicks with Kafka, read from the first hour on, if CURT_EVENTS is set."`
}

// drift is one comparison: of a table with the raw clicks, or of the raw clicks with a partition
// of Kafka.
type drift struct {
	Hour      time.Time `json:"hour"`
	Table     string    `json:"table"`
	Partition *int32    `json:"partition"`
	Clicks    uint64    `json:"clicks"`
	Wrong     uint64    `json:"wrong_rows"`
	Off       uint64    `json:"off"`
	More      uint64    `json:"more"` // counted clicks without a raw click
	Missing   uint64    `json:"missing"`
	Twice     uint64    `json:"twice"`
	Extra     uint64    `json:"extra"`
	Apart     uint64    `json:"not_compared"`
}

// errDrift ends a comparison with differences, which have been printed.
var errDrift = errors.New("statistics differ from raw clicks")

// Run compares hour by hour. The exit code is 1 if there is a difference.
func (c *VerifyClicks) Run(ctx context.Context, t cli.Terminal) error {
	now := time.Now()
	hours, err := c.hours(now)
	if err != nil {
		return err
	}
	store, err := openStore(ctx, clickhouse.OpenAsIs, c.Config, c.Replica, nil)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	s := cli.NewTable(t, c.Format, driftColumns())
	tables, err := c.tables(ctx, store, s, hours, now)
	if err != nil {
		return err
	}
	rows := false
	if c.Kafka && c.Events != "" {
		if rows, err = c.rows(ctx, t, store, s, hours); err != nil {
			return err
		}
	}
	if err := lastReconciled(ctx, t, store, hours[0]); err != nil {
		return err
	}
	if rows {
		t.Note("run curt clicks replay to restore missing clicks from Kafka and rebuild their days")
	}
	switch {
	case tables.more > 0 && !rows:
		t.Note("up to %d clicks are counted without a raw click; if raw clicks were lost, the counts are right. "+
			"Run curt clicks replay to restore those in Kafka, or curt clicks rebuild --reduce to remove the others", tables.more)
	case tables.wrong && !rows:
		t.Note("run curt clicks rebuild to correct the statistics")
	case tables.wrong:
		t.Note("then verify again and run curt clicks rebuild for the remaining differences")
	}
	if rows || tables.wrong {
		return cli.Reported(errDrift)
	}
	return nil
}

// lastReconciled says what workers found when they last reconciled these and later hours.
func lastReconciled(ctx context.Context, t cli.Terminal, store *clickhouse.Store, from time.Time) error {
	entries, err := store.Reconciled(ctx, from)
	if err != nil || len(entries) == 0 {
		return err
	}
	var last time.Time
	outcomes := map[string]int{}
	for _, e := range entries {
		outcomes[e.Outcome]++
		if e.At.After(last) {
			last = e.At
		}
		if e.Outcome == reconcile.Differs {
			t.Note("%s: %d clicks missing, %d surplus, attempt %d to heal: %s", e.Hour.Format(time.RFC3339), e.Missing, e.Surplus, e.Attempt, cmp.Or(e.Reason, "not healed yet"))
		}
	}
	t.Note("workers reconciled %s from %s on, last at %s: %d healed, %d still differ", plural(len(entries), "hour"), from.Format(time.RFC3339), last.UTC().Format(time.RFC3339), outcomes[reconcile.Healed], outcomes[reconcile.Differs])
	return nil
}

// offBy sums the differences between the tables and the raw clicks.
type offBy struct {
	wrong bool
	more  uint64 // counted clicks without a raw click, in the table with most of them
}

func (o *offBy) add(all []reconcile.Drift) {
	for _, d := range all {
		o.wrong, o.more = o.wrong || d.Rows > 0, max(o.more, d.More)
	}
}

// ofReplica selects one of several servers of ClickHouse.
type ofReplica struct {
	Replica int `default:"1" placeholder:"N" help:"Which server of CURT_ANALYTICS, in its order."`
}

// groupOf returns the consumer group that feeds a store.
func groupOf(ctx context.Context, store *clickhouse.Store, topic string) (string, error) {
	r, err := store.Replica(ctx)
	if err == nil {
		err = store.Lacking(r)
	}
	return worker.GroupOf(topic, r.ID), err
}

// opener is clickhouse.Open, or clickhouse.OpenAsIs for a command that only reads.
type opener func(context.Context, clickhouse.Config) (*clickhouse.Store, error)

// openStore connects to a ClickHouse of the settings; senders may be nil. The caller closes the
// store. An error of the settings is a [*config.Error].
func openStore(ctx context.Context, open opener, cfg config.Config, replica int, senders func(context.Context) ([]ship.Sender, error)) (*clickhouse.Store, error) {
	if !config.IsClickHouse(cfg.Analytics) {
		return nil, settings.NoClickHouse(cfg)
	}
	all := settings.ClickHouses(cfg, nil)
	if replica < 1 || replica > len(all) {
		return nil, cli.UsageError(fmt.Sprintf("--replica: expected 1 to %d, the servers of CURT_ANALYTICS", len(all)))
	}
	c := all[replica-1]
	c.Senders = senders
	store, err := open(ctx, c)
	if err != nil {
		return nil, settings.WrongClickHouse(cfg, err)
	}
	return store, nil
}

// tables compares the summing tables with the raw clicks.
func (c *VerifyClicks) tables(ctx context.Context, store *clickhouse.Store, s *cli.Table[drift], hours []time.Time, now time.Time) (found offBy, err error) {
	for _, hour := range hours {
		all, err := store.Verify(ctx, hour, now)
		if err != nil {
			return found, err
		}
		lines := make([]drift, len(all))
		for i, d := range all {
			lines[i] = drift{Hour: hour, Table: d.Table, Clicks: d.Clicks, Wrong: d.Rows, Off: d.Off, More: d.More}
		}
		found.add(all)
		if err := s.Print(lines); err != nil {
			return found, err
		}
	}
	return found, nil
}

// rows compares the raw clicks with Kafka, and reports whether they differ.
func (c *VerifyClicks) rows(ctx context.Context, t cli.Terminal, store *clickhouse.Store, s *cli.Table[drift], hours []time.Time) (found bool, err error) {
	topic, err := settings.Kafka(c.Config)
	if err != nil {
		return false, err
	}
	group, err := groupOf(ctx, store, topic.Topic)
	if err != nil {
		return false, err
	}
	line, read := kafkaProgress(t)
	all, err := worker.Compare(ctx, worker.Comparison{Kafka: topic, Group: group, Store: store, From: hours[0], To: hours[len(hours)-1].Add(time.Hour), Progress: read})
	line.Clear()
	if err != nil {
		return false, settings.OneLine(err)
	}
	lines, earlier := make([]drift, len(all)), uint64(0)
	for i, d := range all {
		earlier += d.Earlier
		lines[i] = drift{
			Hour: d.Hour, Table: "clicks", Partition: &d.Partition, Clicks: d.Kafka, Wrong: d.Wrong(), Off: d.Wrong(),
			Missing: d.Missing, Twice: d.Twice, Extra: d.Extra, Apart: d.Apart,
		}
		found = found || d.Wrong() > 0
	}
	if earlier > 0 {
		t.Note("%d clicks are from an earlier topic that was deleted: they cannot be compared with Kafka", earlier)
	}
	return found, s.Print(lines)
}

func driftColumns() []cli.Column[drift] {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	ofPartition := func(text func(*drift) string) func(*drift) string {
		return func(d *drift) string {
			if d.Partition == nil {
				return ""
			}
			return text(d)
		}
	}
	return []cli.Column[drift]{
		{Name: "HOUR", Text: func(d *drift) string { return d.Hour.Format(time.RFC3339) }},
		{Name: "TABLE", Text: func(d *drift) string { return d.Table }},
		{Name: "PARTITION", Text: ofPartition(func(d *drift) string { return strconv.Itoa(int(*d.Partition)) })},
		{Name: "RAW CLICKS", Text: func(d *drift) string { return number(d.Clicks) }},
		{Name: "WRONG ROWS", Text: func(d *drift) string { return number(d.Wrong) }},
		{Name: "OFF BY", Text: func(d *drift) string { return number(d.Off) }},
		{Name: "MISSING, TWICE, EXTRA", Text: ofPartition(func(d *drift) string { return fmt.Sprintf("%d, %d, %d", d.Missing, d.Twice, d.Extra) })},
		{Name: "NOT COMPARED", Text: ofPartition(func(d *drift) string { return number(d.Apart) })},
	}
}

// RebuildClicks is the command "curt clicks rebuild".
type RebuildClicks struct {
	config.Flags
	ofHours
	ofReplica

	Reduce bool `help:"Also remove counts without a raw click. Lost clicks can be restored first with curt clicks replay, as far as Kafka has them; removed counts cannot."`
	Yes    bool `short:"y" help:"Skip the confirmation."`
}

// Run corrects hour by hour. Reducing a count requires --reduce: the raw clicks may be lost, and
// the sums all that is left of them.
func (c *RebuildClicks) Run(ctx context.Context, t cli.Terminal) error {
	now := time.Now()
	hours, err := c.hours(now)
	if err != nil {
		return err
	}
	if last := hours[len(hours)-1]; !last.Before(now.UTC().Truncate(24 * time.Hour)) {
		return cli.UsageError("--hour: expected hours before today (UTC): clicks that arrive during the rebuild would count twice")
	}
	question := fmt.Sprintf("Rebuild the statistics of %s from %s? No worker may insert clicks of these days during the rebuild.", plural(len(hours), "hour"), hours[0].Format(time.RFC3339))
	if c.Reduce {
		question += " Counts without a raw click are removed."
	}
	if err := t.Confirm(ctx, c.Yes, question); err != nil {
		return err
	}
	store, err := openStore(ctx, clickhouse.Open, c.Config, c.Replica, nil)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	for _, hour := range hours {
		if err := c.allowed(ctx, store, hour, now); err != nil {
			return err
		}
		if err := store.Rebuild(ctx, hour, now); err != nil {
			return err
		}
		all, err := store.Verify(ctx, hour, now)
		if err == nil {
			err = matches(hour.Format(time.RFC3339), all)
		}
		if err != nil {
			return err
		}
		t.Note("%s matches its raw clicks", hour.Format(time.RFC3339))
	}
	return nil
}

// allowed returns an error if the rebuild would reduce a count without --reduce.
func (c *RebuildClicks) allowed(ctx context.Context, store *clickhouse.Store, hour, now time.Time) error {
	if c.Reduce {
		return nil
	}
	all, err := store.Verify(ctx, hour, now)
	for _, d := range all {
		if d.More > 0 {
			return fmt.Errorf("%s: %s counts %d clicks without a raw click; restore them with curt clicks replay if possible, or remove them with --reduce",
				hour.Format(time.RFC3339), d.Table, d.More)
		}
	}
	return err
}

// plural is a number with its noun.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// matches returns an error if a difference remains: clicks were inserted during the rebuild.
func matches(what string, all []reconcile.Drift) error {
	for _, d := range all {
		if d.Rows > 0 {
			return fmt.Errorf("%s: %d rows of %s are off by %d after the rebuild: were clicks of that day inserted during it?", what, d.Rows, d.Table, d.Off)
		}
	}
	return nil
}

// kafkaProgress shows how many records of Kafka are read.
func kafkaProgress(t cli.Terminal) (line *cli.Progress, read func(done, all int64)) {
	line = cli.NewProgress(t, 100)
	return line, func(done, all int64) {
		line.Show(time.Now(), done*100/all, fmt.Sprintf("%d of %d records of Kafka", done, all))
	}
}
