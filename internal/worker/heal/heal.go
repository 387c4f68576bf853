// Package heal compares clicks in ClickHouse with Kafka and with their sums, hour by hour, and
// corrects what differs while workers insert.
//
// It works on hours before the watermark, in which no block is on its way. An hour that was
// compared is compared again only if its clicks or sums are others. Missing clicks are replayed
// from Kafka, sums are rebuilt from clicks, and each step is idempotent: a run that was killed is
// completed by the next one. The journal bounds how often an hour is healed.
package heal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"curt/internal/backend/clickhouse/reconcile"
	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/worker"
)

// MaxAttempts is how often an hour is healed in a row before it is left to an operator.
const MaxAttempts = 3

const (
	day = 24 * time.Hour
	// window is how far back hours are compared: today, yesterday, and what came late at midnight.
	window = 2 * day
	// transitTime is longer than a block is on its way while workers report that they are not behind.
	transitTime = 20 * time.Second
	// current is how old the report of workers may be that are not behind.
	current = 15 * time.Second
)

// Store is what healing needs of ClickHouse.
type Store interface {
	worker.ReplayStore
	Progress(ctx context.Context, now time.Time) (watermarks.Progress, error)
	Hours(ctx context.Context, from, to time.Time) (map[time.Time]reconcile.Hour, error)
	RebuildOpen(ctx context.Context, day, complete, now time.Time, wait func(context.Context) error) error
	Journal(ctx context.Context, entries []reconcile.Entry) error
	Reconciled(ctx context.Context, from time.Time) (map[time.Time]reconcile.Entry, error)
}

// Config says what is compared.
type Config struct {
	Replay worker.Replay // without times; its Store is not used
	Store  Store
	Clock  func() time.Time
	Sleep  func(context.Context, time.Duration) bool
}

// Report is the state of the window after a run.
type Report struct {
	At       time.Time
	Until    time.Time // hours before were compared
	Clicks   uint64    // of Kafka, in the window
	Wrong    uint64    // rows that are missing or too many
	Off      int       // hours whose sums differ
	Replayed uint64    // clicks that this run inserted
	Healed   int       // days that this run corrected
	GivenUp  int       // hours that are left to an operator
	Pending  bool      // a day that differs has clicks that cannot be compared yet
}

// ErrUnknown says that it is not known up to when clicks are complete.
var ErrUnknown = errors.New("the watermark of clicks is unknown")

// run is one reconciliation.
type run struct {
	Config
	now, from, until time.Time
	hours            map[time.Time]reconcile.Hour
	known            map[time.Time]reconcile.Entry
	apart            map[time.Time]bool // days with clicks or rows that cannot be compared
	report           Report
}

// Once compares the hours of the window, and heals what differs.
func Once(ctx context.Context, c Config) (Report, error) {
	r := &run{Config: c, now: c.Clock()}
	progress, err := c.Store.Progress(ctx, r.now)
	if err != nil {
		return Report{}, err
	}
	if progress.Complete.IsZero() {
		return Report{}, ErrUnknown
	}
	r.until = progress.Complete.UTC().Truncate(time.Hour)
	r.from = r.until.Truncate(day).Add(day - window)
	if r.known, err = c.Store.Reconciled(ctx, r.from); err != nil {
		return Report{}, err
	}
	changed, err := r.compare(ctx, r.changed)
	if err != nil {
		return Report{}, err
	}
	for at := r.from; at.Before(r.until); at = at.Add(day) {
		if err := r.heal(ctx, at, changed); err != nil {
			return Report{}, err
		}
	}
	return r.sum(), nil
}

// changed reports whether an hour has other clicks than when it was compared, or may still be healed.
func (r *run) changed(at time.Time) bool {
	was, known := r.known[at]
	h := r.hours[at]
	return !known || was.Outcome == reconcile.Healing || was.Outcome == reconcile.Differs && was.Attempt < MaxAttempts || was.Rows != h.Rows || was.Hash != h.Hash || was.Off != h.Off()
}

// compare compares some hours with Kafka and their sums, and returns an entry for each.
func (r *run) compare(ctx context.Context, which func(time.Time) bool) (found map[time.Time]reconcile.Entry, err error) {
	if r.hours, err = r.Store.Hours(ctx, r.from, r.until); err != nil {
		return nil, err
	}
	found = map[time.Time]reconcile.Entry{}
	for at := r.from; at.Before(r.until); at = at.Add(time.Hour) {
		if which(at) {
			h := r.hours[at]
			found[at] = reconcile.Entry{Hour: at, At: r.Clock(), Rows: h.Rows, Hash: h.Hash, Off: h.Off(), Outcome: reconcile.Matches}
		}
	}
	if len(found) == 0 {
		return found, nil
	}
	first := slices.MinFunc(slices.Collect(maps.Keys(found)), time.Time.Compare)
	all, err := worker.Compare(ctx, worker.Comparison{Kafka: r.Replay.Kafka, Group: r.Replay.Group, Store: r.Store, From: first, To: r.until})
	if err != nil {
		return nil, err
	}
	r.apart = map[time.Time]bool{}
	for _, c := range all {
		if c.Apart > 0 {
			r.apart[c.Hour.Truncate(day)] = true
		}
		e, wanted := found[c.Hour]
		if !wanted {
			continue
		}
		e.Kafka, e.Missing, e.Surplus = e.Kafka+c.Kafka, e.Missing+c.Missing, e.Surplus+c.Twice+c.Extra
		found[c.Hour] = e
	}
	for at, e := range found {
		if e.Wrong() > 0 || e.Off {
			e.Outcome = reconcile.Differs
			found[at] = e
		}
	}
	return found, nil
}

// heal corrects a day if it differs, and writes the entries of its hours.
func (r *run) heal(ctx context.Context, at time.Time, found map[time.Time]reconcile.Entry) error {
	mine, attempt, needed := map[time.Time]reconcile.Entry{}, uint8(0), r.dayOff(at)
	for hour := at; hour.Before(at.Add(day)) && hour.Before(r.until); hour = hour.Add(time.Hour) {
		e, is := found[hour]
		was := r.known[hour]
		if !is && was.Outcome == reconcile.Differs {
			e, is = was, true
		}
		if !is {
			continue
		}
		mine[hour] = e
		if e.Missing > 0 || e.Off {
			needed = true
			attempt = max(attempt, was.Attempt)
		}
	}
	// Sums of clicks that cannot be compared may be right although the rows are gone.
	if !needed || attempt >= MaxAttempts || r.apart[at] {
		r.report.Pending = r.report.Pending || needed && r.apart[at]
		for hour, e := range mine {
			if e.Outcome == reconcile.Differs {
				e.Attempt, e.Reason = r.known[hour].Attempt, r.known[hour].Reason
				mine[hour] = e
			}
		}
		return r.note(ctx, mine)
	}
	if len(mine) == 0 { // sums of the day alone differ
		mine[at] = reconcile.Entry{Hour: at, Rows: r.hours[at].Rows, Hash: r.hours[at].Hash, Off: true}
	}
	for hour, e := range mine {
		if e.Attempt = 0; e.Missing > 0 || e.Off {
			e.Attempt, e.Outcome = attempt+1, reconcile.Healing
		}
		mine[hour] = e
	}
	if err := r.note(ctx, mine); err != nil { // before: a run that kills its process counts, too
		return err
	}
	failed := r.correct(ctx, at)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.judge(ctx, at, mine, failed)
}

// correct replays what is missing of a day, and rebuilds its sums.
func (r *run) correct(ctx context.Context, at time.Time) error {
	replay := r.Replay
	replay.Store, replay.Now, replay.Unfinished = rebuilder{r.Store, r}, r.now, true
	replay.From, replay.To = at, earlier(at.Add(day), r.until)
	done, err := worker.Repeat(ctx, replay)
	r.report.Replayed += done.Inserted
	if err != nil {
		return err
	}
	if len(done.Days) == 0 { // nothing was missing: the sums alone are wrong
		err = replay.Store.RebuildDay(ctx, at, r.now)
	}
	if err == nil {
		r.report.Healed++
	}
	return err
}

// judge compares a day that was healed, and writes the outcome.
func (r *run) judge(ctx context.Context, at time.Time, before map[time.Time]reconcile.Entry, failed error) error {
	after, err := r.compare(ctx, func(hour time.Time) bool { _, is := before[hour]; return is })
	if err != nil {
		return err
	}
	for hour, e := range after {
		was := before[hour]
		e.Off = e.Off || hour.Equal(at) && r.dayOff(at)
		switch {
		case e.Missing > 0 || e.Off:
			e.Attempt, e.Outcome = was.Attempt, reconcile.Differs
			e.Reason = "clicks or sums still differ"
			if failed != nil {
				e.Reason = failed.Error()
			}
		case was.Outcome == reconcile.Healing && e.Surplus == 0:
			e.Outcome = reconcile.Healed
		}
		after[hour] = e
	}
	return r.note(ctx, after)
}

// note writes entries, which are the last of their hours from then on.
func (r *run) note(ctx context.Context, entries map[time.Time]reconcile.Entry) error {
	list := slices.SortedFunc(maps.Values(entries), func(a, b reconcile.Entry) int { return a.Hour.Compare(b.Hour) })
	list = slices.DeleteFunc(list, func(e reconcile.Entry) bool { return r.known[e.Hour] == e })
	for i := range list {
		list[i].At = r.Clock()
		r.known[list[i].Hour] = list[i]
	}
	if len(list) == 0 {
		return nil
	}
	return r.Store.Journal(ctx, list)
}

// dayOff reports whether the sums of a day that is over differ from its clicks.
func (r *run) dayOff(at time.Time) bool {
	return !at.Add(day).After(r.until) && reconcile.DayOff(r.hours, at)
}

func (r *run) sum() Report {
	s := r.report
	s.At, s.Until = r.now, r.until
	for _, e := range r.known {
		s.Clicks, s.Wrong = s.Clicks+e.Kafka, s.Wrong+e.Wrong()
		if e.Off {
			s.Off++
		}
		if e.Attempt >= MaxAttempts && e.Outcome == reconcile.Differs {
			s.GivenUp++
		}
	}
	return s
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// rebuilder rebuilds a day that is not over as far as clicks are complete.
type rebuilder struct {
	worker.ReplayStore
	run *run
}

// RebuildDay implements worker.ReplayStore.
func (b rebuilder) RebuildDay(ctx context.Context, at, now time.Time) error {
	if !at.Add(day).After(b.run.until) {
		return b.run.Store.RebuildDay(ctx, at, now)
	}
	return b.run.Store.RebuildOpen(ctx, at, b.run.until, now, b.run.wait)
}

// errBehind says that blocks may be on their way for longer than transitTime.
var errBehind = errors.New("workers are behind, so the day's sums are corrected later")

// wait waits until every block that was on its way is inserted.
func (r *run) wait(ctx context.Context) error {
	for range 2 {
		p, err := r.Store.Progress(ctx, r.Clock())
		if err == nil && r.Clock().Sub(p.Updated) > current {
			err = errBehind
		}
		if err != nil {
			return fmt.Errorf("rebuild today: %w", err)
		}
		r.Sleep(ctx, transitTime/2)
	}
	return context.Cause(ctx)
}
