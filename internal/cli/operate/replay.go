package operate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/postgres"
	"curt/internal/cli"
	"curt/internal/compose/pipeline"
	"curt/internal/config"
	"curt/internal/link"
	"curt/internal/settings"
	"curt/internal/worker"
)

// ReplayClicks is the command "curt clicks replay".
type ReplayClicks struct {
	config.Flags
	cli.Between
	ofReplica

	Partition []int32 `placeholder:"N" help:"Only this partition; may be repeated. Default: all."`
	State     string  `type:"path" placeholder:"FILE" help:"Store the progress in this file, and resume from it."`
	Reduce    bool    `help:"Also rebuild days Kafka no longer holds in full; totals may drop."`
	Yes       bool    `short:"y" help:"Skip the confirmation."`
}

// Run inserts missing clicks, rebuilds the days that had any, and compares these.
func (c *ReplayClicks) Run(ctx context.Context, t cli.Terminal) error {
	r, err := c.replay(time.Now())
	if err != nil {
		return err
	}
	question := fmt.Sprintf("Replay clicks from %s to %s from Kafka that are missing in ClickHouse? No worker may insert clicks of these days during the replay.",
		r.From.Format(time.RFC3339), r.To.Format(time.RFC3339))
	if err := t.Confirm(ctx, c.Yes, question); err != nil {
		return err
	}
	store, err := openStore(ctx, clickhouse.Open, c.Config, c.Replica, nil)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	line, read := kafkaProgress(t)
	r.Store, r.Progress = store, read
	done, err := c.insert(ctx, store, r)
	line.Clear()
	if errors.Is(err, worker.ErrReplay) {
		return cli.UsageError(err.Error())
	}
	if err != nil {
		if c.State != "" {
			t.Note("run the same command to resume from %s", c.State)
		}
		return err
	}
	t.Note("%d records, %d clicks from %s on: %d already present, %d inserted", done.Records, done.Clicks, done.From.Format(time.RFC3339), done.There, done.Inserted)
	if done.Today > 0 {
		t.Note("%d missing clicks belong to days that have not ended (UTC): run it again after they end", done.Today)
	}
	if done.Poison > 0 {
		t.Note("%d records are unreadable", done.Poison)
	}
	if err := verifyDays(ctx, store, done.Days, r); err != nil {
		return err
	}
	if c.State != "" {
		if err := cli.RemoveState(c.State); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
	}
	return nil
}

// insert inserts missing clicks from the Kafka of the settings, for the workspaces of their links.
func (c *ReplayClicks) insert(ctx context.Context, store *clickhouse.Store, r worker.Replay) (done worker.Replayed, err error) {
	if c.Events == "" {
		return done, &config.Error{Setting: "CURT_EVENTS", Value: "", Want: "expected kafka://host:port/topic"}
	}
	if r.Kafka, err = settings.Kafka(c.Config); err != nil {
		return done, err
	}
	if r.Group, err = groupOf(ctx, store, r.Kafka.Topic); err != nil {
		return done, err
	}
	links, err := postgres.OpenLinks(ctx, postgres.LinksConfig{URL: c.Links})
	if err != nil {
		return done, settings.WrongDatabase("CURT_LINKS", c.Links, err)
	}
	defer func() { err = errors.Join(err, links.Close()) }()
	r.Workspaces = func(ctx context.Context, keys []link.Key) ([]string, error) {
		return pipeline.WorkspacesOf(ctx, links, keys)
	}
	if done, err = worker.Repeat(ctx, r); err != nil {
		return done, settings.OneLine(err)
	}
	return done, nil
}

// replay reads the flags, and the state of an earlier run.
func (c *ReplayClicks) replay(now time.Time) (r worker.Replay, err error) {
	from, to, err := c.Times()
	if err != nil {
		return r, err
	}
	keep, err := c.Retentions()
	if err != nil {
		return r, cli.UsageError(fmt.Sprintf("CURT_RAW_RETENTION_OF: %v", err))
	}
	oldest := now.UTC().AddDate(0, 0, -int(keep.Least())).Truncate(24 * time.Hour).Add(24 * time.Hour)
	r = worker.Replay{From: oldest, To: now.UTC().Truncate(time.Hour).Add(time.Hour), Partitions: c.Partition, Reduce: c.Reduce, RetentionDays: keep.Of, Now: now}
	if c.State != "" {
		var state worker.ReplayState
		switch err := cli.LoadState(c.State, &state); {
		case err == nil:
			r.State, r.From, r.To = &state, state.From, state.To
		case !errors.Is(err, fs.ErrNotExist):
			return r, cli.UsageError(fmt.Sprintf("--state: %v", err))
		}
		if info, err := os.Stat(filepath.Dir(c.State)); err != nil || !info.IsDir() {
			return r, cli.UsageError(fmt.Sprintf("--state: expected a file in an existing folder, not in %s", filepath.Dir(c.State)))
		}
		r.Save = func(s *worker.ReplayState) error { return cli.SaveState(c.State, s) }
	}
	r.Earliest = from.IsZero()
	if !from.IsZero() {
		r.From = from.UTC().Truncate(time.Hour)
	}
	if !to.IsZero() {
		r.To = to.UTC().Truncate(time.Hour)
	}
	switch {
	case r.From.Before(oldest):
		return r, cli.UsageError(fmt.Sprintf("--from: expected %s or later: older raw clicks are not kept (CURT_RAW_RETENTION)", oldest.Format(time.DateOnly)))
	case !r.From.Before(r.To):
		return r, cli.UsageError("--to: expected an hour after --from")
	}
	return r, nil
}

// verifyDays verifies the rebuilt days.
func verifyDays(ctx context.Context, store *clickhouse.Store, days []time.Time, r worker.Replay) error {
	for _, day := range days {
		all, err := store.VerifyDay(ctx, day, r.Now)
		if err != nil {
			return err
		}
		if err := matches(day.Format(time.DateOnly), all); err != nil {
			return err
		}
	}
	return nil
}
