package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/config"
	"curt/internal/server"
	"curt/internal/worker"
)

type clicksReplayCmd struct {
	config.Flags
	between

	Partition []int32 `placeholder:"N" help:"Only of this partition; may be repeated. Default: of all."`
	State     string  `type:"path" placeholder:"FILE" help:"Keep in this file how far it has come, and go on from there."`
	Reduce    bool    `help:"Also of days of which Kafka no longer has all clicks: what is added up of them becomes what is there one by one then, which is less where clicks were lost."`
	Yes       bool    `short:"y" help:"Do not ask."`
}

// Run inserts what is missing, adds up the days anew that had something missing, and compares
// them.
func (c *clicksReplayCmd) Run(ctx context.Context, t terminal) error {
	r, err := c.replay(time.Now())
	if err != nil {
		return err
	}
	question := fmt.Sprintf("Bring clicks from %s to %s once more from Kafka, where ClickHouse does not have them? No worker may insert clicks of these days meanwhile.",
		r.From.Format(time.RFC3339), r.To.Format(time.RFC3339))
	if err := t.confirm(ctx, c.Yes, question); err != nil {
		return err
	}
	store, err := server.OpenCounted(ctx, c.Config)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	line := newProgress(t, 100)
	r.Progress = func(done, all int64) {
		line.show(time.Now(), done*100/all, fmt.Sprintf("%d of %d records of Kafka", done, all))
	}
	done, err := server.ReplayClicks(ctx, c.Config, store, r)
	line.clear()
	if errors.Is(err, worker.ErrReplay) {
		return usageError(err.Error())
	}
	if err != nil {
		if c.State != "" {
			t.note("the same command goes on from %s", c.State)
		}
		return err
	}
	t.note("%d records, %d clicks from %s on: %d were there, %d are inserted", done.Records, done.Clicks, done.From.Format(time.RFC3339), done.There, done.Inserted)
	if done.Today > 0 {
		t.note("%d clicks are missing of days that are not over (UTC): repeat it when they are", done.Today)
	}
	if done.Poison > 0 {
		t.note("%d records cannot be read", done.Poison)
	}
	if err := compared(ctx, store, done.Days, r); err != nil {
		return err
	}
	if c.State != "" {
		if err := os.Remove(c.State); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("replay: %w", err)
		}
	}
	return nil
}

// replay reads the flags, and the state where there is one.
func (c *clicksReplayCmd) replay(now time.Time) (r worker.Replay, err error) {
	from, to, err := c.times()
	if err != nil {
		return r, err
	}
	keep, err := c.Retentions()
	if err != nil {
		return r, usageError(fmt.Sprintf("CURT_RAW_RETENTION_OF: %v", err))
	}
	oldest := now.UTC().AddDate(0, 0, -int(keep.Least())).Truncate(24 * time.Hour).Add(24 * time.Hour)
	r = worker.Replay{From: oldest, To: now.UTC().Truncate(time.Hour).Add(time.Hour), Partitions: c.Partition, Reduce: c.Reduce, Now: now}
	if c.State != "" {
		var state worker.ReplayState
		switch err := loadState(c.State, &state); {
		case err == nil:
			r.State, r.From, r.To = &state, state.From, state.To
		case !errors.Is(err, fs.ErrNotExist):
			return r, usageError(fmt.Sprintf("--state: %v", err))
		}
		if info, err := os.Stat(filepath.Dir(c.State)); err != nil || !info.IsDir() {
			return r, usageError(fmt.Sprintf("--state: want a file in a folder that is there, not in %s", filepath.Dir(c.State)))
		}
		r.Save = func(s *worker.ReplayState) error { return saveState(c.State, s) }
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
		return r, usageError(fmt.Sprintf("--from: want %s or later: older clicks are not kept one by one (CURT_RAW_RETENTION)", oldest.Format(time.DateOnly)))
	case !r.From.Before(r.To):
		return r, usageError("--to: want an hour after --from")
	}
	return r, nil
}

// compared looks whether days that were added up anew are right.
func compared(ctx context.Context, store *clickhouse.Store, days []time.Time, r worker.Replay) error {
	for _, day := range days {
		all, err := store.VerifyDay(ctx, day, r.Now)
		if err != nil {
			return err
		}
		if err := right(day.Format(time.DateOnly), all); err != nil {
			return err
		}
	}
	return nil
}
