package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/config"
	"curt/internal/server"
)

// ofHours is which hours a command is about.
type ofHours struct {
	Hour  string `placeholder:"DATE" help:"The first hour, as 2026-01-31T12:00:00Z. Default: the last that has ended."`
	Hours int    `default:"1" help:"How many hours."`
}

// hours returns when they begin.
func (c *ofHours) hours(now time.Time) (begin []time.Time, err error) {
	if c.Hours < 1 || c.Hours > 31*24 {
		return nil, usageError("--hours: want 1 to 744")
	}
	first := now.UTC().Truncate(time.Hour).Add(-time.Hour)
	if c.Hour != "" {
		if first, err = moment(c.Hour); err != nil {
			return nil, usageError(fmt.Sprintf("--hour: %v", err))
		}
	}
	first = first.UTC().Truncate(time.Hour)
	for i := range c.Hours {
		begin = append(begin, first.Add(time.Duration(i)*time.Hour))
	}
	return begin, nil
}

type clicksVerifyCmd struct {
	config.Flags
	format
	ofHours

	Kafka bool `name:"kafka" negatable:"" default:"true" help:"Compare the clicks with Kafka, too, which is read from the first of the hours on, where CURT_EVENTS is set."`
}

// drift is a line of what was compared: a table with the clicks, or the clicks with those of
// a partition in Kafka.
type drift struct {
	Hour      time.Time `json:"hour"`
	Table     string    `json:"table"`
	Partition *int32    `json:"partition"`
	Clicks    uint64    `json:"clicks"`
	Wrong     uint64    `json:"wrong_rows"`
	Off       uint64    `json:"off"`
	More      uint64    `json:"more"` // clicks that a table has more than there are one by one
	Missing   uint64    `json:"missing"`
	Twice     uint64    `json:"twice"`
	Extra     uint64    `json:"extra"`
	Apart     uint64    `json:"not_compared"`
}

// errDrift ends a comparison that found something, which has been printed.
var errDrift = errors.New("statistics and clicks differ")

// Run compares hour by hour. It ends with 1 where something differs.
func (c *clicksVerifyCmd) Run(ctx context.Context, t terminal) error {
	now := time.Now()
	hours, err := c.hours(now)
	if err != nil {
		return err
	}
	store, err := server.OpenCounted(ctx, c.Config)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	s := newSheet(t, c.format, driftColumns())
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
	if rows {
		t.note("curt clicks replay brings what is missing from Kafka, and adds its days up anew")
	}
	switch {
	case tables.more > 0 && !rows:
		t.note("up to %d clicks are added up that are not there one by one: where these were lost, what is added up is right. "+
			"curt clicks replay brings back what Kafka has; curt clicks rebuild --reduce takes the others away", tables.more)
	case tables.wrong && !rows:
		t.note("curt clicks rebuild corrects what is added up")
	case tables.wrong:
		t.note("then verify again: what is still wrong then, curt clicks rebuild corrects")
	}
	if rows || tables.wrong {
		return saidError{errDrift}
	}
	return nil
}

// offBy is what is wrong with what is added up.
type offBy struct {
	wrong bool
	more  uint64 // clicks that are not there one by one, in the table that has most of them
}

func (o *offBy) add(all []clickhouse.Drift) {
	for _, d := range all {
		o.wrong, o.more = o.wrong || d.Rows > 0, max(o.more, d.More)
	}
}

// tables compares what is added up with the clicks.
func (c *clicksVerifyCmd) tables(ctx context.Context, store *clickhouse.Store, s *sheet[drift], hours []time.Time, now time.Time) (found offBy, err error) {
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
		if err := s.print(lines); err != nil {
			return found, err
		}
	}
	return found, nil
}

// rows compares the clicks with Kafka, and reports whether something is wrong.
func (c *clicksVerifyCmd) rows(ctx context.Context, t terminal, store *clickhouse.Store, s *sheet[drift], hours []time.Time) (found bool, err error) {
	line := newProgress(t, 100)
	all, err := server.CompareClicks(ctx, c.Config, store, hours[0], hours[len(hours)-1].Add(time.Hour), func(done, all int64) {
		line.show(time.Now(), done*100/all, fmt.Sprintf("%d of %d records of Kafka", done, all))
	})
	line.clear()
	if err != nil {
		return false, err
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
		t.note("%d clicks are of an earlier life of the topic, which was deleted and made anew: Kafka has nothing to compare them with", earlier)
	}
	return found, s.print(lines)
}

func driftColumns() []column[drift] {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	return []column[drift]{
		{"HOUR", func(d *drift) string { return d.Hour.Format(time.RFC3339) }},
		{"TABLE", func(d *drift) string { return d.Table }},
		{"PARTITION", func(d *drift) string {
			if d.Partition == nil {
				return ""
			}
			return strconv.Itoa(int(*d.Partition))
		}},
		{"CLICKS ADD UP TO", func(d *drift) string { return number(d.Clicks) }},
		{"WRONG ROWS", func(d *drift) string { return number(d.Wrong) }},
		{"OFF BY", func(d *drift) string { return number(d.Off) }},
		{"MISSING, TWICE, EXTRA", func(d *drift) string {
			if d.Partition == nil {
				return ""
			}
			return fmt.Sprintf("%d, %d, %d", d.Missing, d.Twice, d.Extra)
		}},
		{"NOT COMPARED", func(d *drift) string {
			if d.Partition == nil {
				return ""
			}
			return number(d.Apart)
		}},
	}
}

type clicksRebuildCmd struct {
	config.Flags
	ofHours

	Reduce bool `help:"Also where clicks are added up that are not there one by one: they are taken away. If they were lost, curt clicks replay brings back what Kafka has; what was taken away before nobody brings back."`
	Yes    bool `short:"y" help:"Do not ask."`
}

// Run corrects hour by hour. What would take clicks away has to be asked for: the clicks may be
// lost, and what is added up of them all that is left.
func (c *clicksRebuildCmd) Run(ctx context.Context, t terminal) error {
	now := time.Now()
	hours, err := c.hours(now)
	if err != nil {
		return err
	}
	if last := hours[len(hours)-1]; !last.Before(now.UTC().Truncate(24 * time.Hour)) {
		return usageError("--hour: want hours before today (UTC): clicks that arrive meanwhile would count twice")
	}
	question := fmt.Sprintf("Add up the clicks of %s from %s anew? No worker may insert clicks of these days meanwhile.", several(len(hours), "hour"), hours[0].Format(time.RFC3339))
	if c.Reduce {
		question += " Clicks that are not there one by one are taken away."
	}
	if err := t.confirm(ctx, c.Yes, question); err != nil {
		return err
	}
	store, err := server.OpenCounted(ctx, c.Config)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	for _, hour := range hours {
		if err := c.loses(ctx, store, hour, now); err != nil {
			return err
		}
		if err := store.Rebuild(ctx, hour, now); err != nil {
			return err
		}
		all, err := store.Verify(ctx, hour, now)
		if err == nil {
			err = right(hour.Format(time.RFC3339), all)
		}
		if err != nil {
			return err
		}
		t.note("%s is what its clicks add up to", hour.Format(time.RFC3339))
	}
	return nil
}

// loses refuses what would take clicks away, unless that is asked for.
func (c *clicksRebuildCmd) loses(ctx context.Context, store *clickhouse.Store, hour, now time.Time) error {
	if c.Reduce {
		return nil
	}
	all, err := store.Verify(ctx, hour, now)
	for _, d := range all {
		if d.More > 0 {
			return fmt.Errorf("%s: %s adds up %d clicks that are not there one by one; were they lost, curt clicks replay may bring them back; with --reduce they are taken away",
				hour.Format(time.RFC3339), d.Table, d.More)
		}
	}
	return err
}

// several spells a number of things.
func several(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// right reports what is still off: somebody inserted meanwhile.
func right(what string, all []clickhouse.Drift) error {
	for _, d := range all {
		if d.Rows > 0 {
			return fmt.Errorf("%s: %d rows of %s are off by %d after they were added up anew: were clicks of that day inserted meanwhile?", what, d.Rows, d.Table, d.Off)
		}
	}
	return nil
}
