// Package refill gives a replica of ClickHouse the clicks that another one has and Kafka no longer
// does, day by day, while workers insert into both: a new one, or one that was away for longer than Kafka
// keeps records.
//
// A click that the other replica has came from Kafka before the end that Kafka has now. Once the
// replica has everything before that end, what it still lacks can come from the other replica alone,
// which has to have everything that Kafka no longer has. Days of which both have the same are skipped.
// The state is in the replica: an emptied one begins again, a killed refill goes on.
package refill

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"curt/internal/backend/clickhouse"
	"curt/internal/backend/clickhouse/clickdb"
	"curt/internal/backend/clickhouse/reconcile"
	"curt/internal/backend/clickhouse/watermarks"
	"curt/internal/backend/kafka"
	"curt/internal/clicks"
	"curt/internal/clicks/idset"
	"curt/internal/worker"
)

const (
	day = 24 * time.Hour
	// DefaultRate bounds how many clicks a second are inserted.
	DefaultRate = 50_000
	// A block ends with a click whose hash is a multiple of blockMean, so that a repeated refill has
	// the same blocks, or at maxBlock.
	blockMean = 8_000
	maxBlock  = clickdb.MaxBlock
	// pollEvery is how often the offsets of the group are read.
	pollEvery = time.Second
)

// Target is the replica that is filled.
type Target interface {
	StoredClicks(ctx context.Context, from, to time.Time, partitions int, f func(reconcile.StoredClick) error) error
	Insert(ctx context.Context, token string, rows []clickdb.Row) error
	StageSums(ctx context.Context, source *reconcile.Tables, batch string, day time.Time) error
	AdoptSums(ctx context.Context, batch string, day time.Time) error
	AdoptValues(ctx context.Context, source *reconcile.Tables, day, now time.Time) error
	Advance(ctx context.Context, marks []watermarks.Watermark) error
	RefilledDays(ctx context.Context, gap time.Time) (map[time.Time]bool, error)
	RefilledDay(ctx context.Context, gap, day time.Time) error
	Refilled(ctx context.Context, gap time.Time) error
	Fingerprints(ctx context.Context, recent time.Time) (map[time.Time]reconcile.Fingerprint, error)
	Marks(ctx context.Context) ([]watermarks.Watermark, error)
}

// Config says what is filled from where.
type Config struct {
	Kafka  kafka.Config
	Group  string            // that feeds the target
	Source *clickhouse.Store // FromKafka has none
	Target Target
	Gap    time.Time // of the target, as it was before the refill: a later one stays open

	Retention time.Duration                      // days that are older may have lost clicks to their retention
	Rate      int                                // clicks a second; 0 = DefaultRate
	Inserted  func(group string) map[int32]int64 // by partition, all before is in the target, see worker.Worker; nil = nothing is known
	Sleep     func(context.Context, time.Duration) bool
	Now       time.Time
	Day       func(day time.Time, done, all int, inserted uint64) // is called after each day; nil = none
}

// Result is what a refill did.
type Result struct {
	Days   int
	Clicks uint64 // inserted
}

// run is one refill.
type run struct {
	Config
	topic *kafka.Reread
	batch string
	done  Result

	imported map[time.Time]bool // days of which the source has sums alone
}

// All gives the target everything that the source has and records that it is complete.
func All(ctx context.Context, c Config) (Result, error) {
	r, err := begin(ctx, c)
	if err != nil {
		return Result{}, err
	}
	defer r.topic.Close()
	if err := r.atHand(ctx); err != nil {
		return r.done, err
	}
	marks, err := c.Source.Marks(ctx) // before the clicks that they promise are read
	if err != nil {
		return r.done, err
	}
	complete, err := c.Target.RefilledDays(ctx, c.Gap)
	if err != nil {
		return r.done, err
	}
	days, err := r.differing(ctx)
	if err != nil {
		return r.done, err
	}
	if err := r.days(ctx, days, complete, func(ctx context.Context, day time.Time) error { return c.Target.RefilledDay(ctx, c.Gap, day) }); err != nil {
		return r.done, err
	}
	if err := c.Target.Advance(ctx, marks); err != nil {
		return r.done, err
	}
	return r.done, c.Target.Refilled(ctx, c.Gap)
}

// ErrSourceLacks says that the source may itself lack something that Kafka no longer has.
var ErrSourceLacks = errors.New("the replica to fill from has not read what Kafka still has")

// atHand returns an error unless the source has everything that Kafka no longer has: its worker notes a
// gap of its own before it reads on behind it.
func (r *run) atHand(ctx context.Context) error {
	source, err := r.Source.Replica(ctx)
	if err != nil {
		return err
	}
	all, err := r.topic.Passed(ctx, worker.GroupOf(r.Kafka.Topic, source.ID), r.Now)
	if err == nil && slices.ContainsFunc(all, func(p kafka.Passed) bool { return worker.Stored(p) < p.Low }) {
		err = fmt.Errorf("refill from %s: %w", r.Source.Address(), ErrSourceLacks)
	}
	return err
}

// differing returns the days of which the source may have what the target has not. What the source has is
// read first: what the target gets meanwhile can only make days differ.
func (r *run) differing(ctx context.Context) (days []time.Time, err error) {
	recent := r.Now.Add(-r.Retention)
	theirs, err := r.Source.Fingerprints(ctx, recent)
	if err != nil {
		return nil, err
	}
	mine, err := r.Target.Fingerprints(ctx, recent)
	for at, of := range theirs {
		if !mine[at].Covers(of) {
			days = append(days, at)
		}
		r.imported[at] = of.Imported()
	}
	slices.SortFunc(days, time.Time.Compare)
	return days, err
}

// Some gives the target the clicks that it lacks of some days.
func Some(ctx context.Context, c Config, days []time.Time) (Result, error) {
	r, err := begin(ctx, c)
	if err != nil {
		return Result{}, err
	}
	defer r.topic.Close()
	return r.done, r.days(ctx, days, nil, func(context.Context, time.Time) error { return nil })
}

// FromKafka records that the target is complete if Kafka alone has filled it, and reports whether it is: then
// no source is needed. It waits until the target has what Kafka has now.
//
// That is so if Kafka never gave up a record, so that the target was fed everything that there ever was. A
// topic that was deleted and created again does not show what it had before. So the target must know of no
// earlier life of the topic, and no refill from another replica may have begun.
func FromKafka(ctx context.Context, c Config) (bool, error) {
	r, err := begin(ctx, c)
	if err != nil {
		return false, err
	}
	defer r.topic.Close()
	if kept, err := r.kept(ctx); err != nil || !kept {
		return false, err
	}
	days, err := c.Target.RefilledDays(ctx, c.Gap)
	if err != nil || len(days) > 0 || c.Gap.After(time.Unix(0, 0)) {
		return false, err
	}
	if err := r.pass(ctx); err != nil {
		return false, err
	}
	if kept, err := r.kept(ctx); err != nil || !kept { // else something may have gone before it was read
		return false, err
	}
	marks, err := c.Target.Marks(ctx)
	if err != nil {
		return false, err
	}
	for _, m := range marks {
		if m.Topic != worker.TopicName(c.Kafka, r.topic.Topic) {
			return false, nil
		}
	}
	return true, c.Target.Refilled(ctx, c.Gap)
}

// kept reports whether Kafka has every record that the topic ever had.
func (r *run) kept(ctx context.Context) (bool, error) {
	all, err := r.topic.Passed(ctx, r.Group, r.Now)
	return err == nil && !slices.ContainsFunc(all, func(p kafka.Passed) bool { return p.Low > 0 }), err
}

func begin(ctx context.Context, c Config) (*run, error) {
	topic, err := kafka.OpenReread(ctx, c.Kafka)
	if err != nil {
		return nil, err
	}
	if c.Rate <= 0 {
		c.Rate = DefaultRate
	}
	return &run{Config: c, topic: topic, batch: rand.Text(), imported: map[time.Time]bool{}}, nil
}

// days fills days that are not complete yet.
func (r *run) days(ctx context.Context, days []time.Time, complete map[time.Time]bool, record func(context.Context, time.Time) error) error {
	for i, at := range days {
		if complete[at] {
			continue
		}
		before := r.done.Clicks
		if err := r.day(ctx, at); err != nil {
			return fmt.Errorf("refill %s: %w", at.Format(time.DateOnly), err)
		}
		if err := record(ctx, at); err != nil {
			return err
		}
		r.done.Days++
		if r.Day != nil {
			r.Day(at, i+1, len(days), r.done.Clicks-before)
		}
	}
	return nil
}

// day fills a day. What the source has is read first, then where Kafka ends: the order is what keeps a
// click from being inserted by a worker, too.
func (r *run) day(ctx context.Context, at time.Time) error {
	ids, old := idset.New(idset.MaxPages), at.Before(r.Now.Add(-r.Retention)) || r.imported[at]
	err := r.Source.StoredClicks(ctx, at, at.Add(day), r.topic.Partitions, func(k reconcile.StoredClick) error {
		_, err := ids.Add(k.ID)
		return err
	})
	if err == nil && old {
		err = r.Target.StageSums(ctx, r.Source.Tables, r.batch, at)
	}
	if err == nil {
		err = r.pass(ctx)
	}
	if err == nil {
		err = r.Target.StoredClicks(ctx, at, at.Add(day), r.topic.Partitions, func(k reconcile.StoredClick) error {
			ids.Meet(k.ID)
			return nil
		})
	}
	if err == nil {
		err = r.insert(ctx, at, ids)
	}
	if err != nil || !old {
		return err
	}
	if err := r.Target.AdoptSums(ctx, r.batch, at); err != nil {
		return err
	}
	return r.Target.AdoptValues(ctx, r.Source.Tables, at, r.Now)
}

// pass waits until the target has everything that Kafka has now.
func (r *run) pass(ctx context.Context) error {
	ends, err := r.topic.Ends(ctx)
	for err == nil {
		var passed bool
		if passed, err = r.passed(ctx, ends); passed || err != nil {
			break
		}
		r.Sleep(ctx, pollEvery)
		err = context.Cause(ctx)
	}
	return err
}

// passed reports whether the target has everything before some offsets. The offsets of the group do not
// say so of its last blocks; of its own partitions a worker knows.
func (r *run) passed(ctx context.Context, ends map[int32]int64) (bool, error) {
	var inserted map[int32]int64
	if r.Inserted != nil {
		inserted = r.Inserted(r.Group)
	}
	committed, err := r.topic.Passed(ctx, r.Group, r.Now)
	if err != nil {
		return false, err
	}
	for _, p := range committed {
		if end := ends[p.Partition]; p.Low < end && max(worker.Stored(p), inserted[p.Partition]) < end { // else there is nothing to read
			return false, nil
		}
	}
	return true, nil
}

// insert inserts the clicks of a day that were not met. Their blocks have tokens made of their clicks: a
// block that a killed refill had sent is not inserted a second time.
func (r *run) insert(ctx context.Context, at time.Time, ids *idset.Set) error {
	var block []clickdb.Row
	flush := func() error {
		if len(block) == 0 {
			return nil
		}
		if err := r.Target.Insert(ctx, tokenOf(at, block), block); err != nil {
			return err
		}
		r.done.Clicks += uint64(len(block))
		r.Sleep(ctx, time.Duration(len(block))*time.Second/time.Duration(r.Rate))
		block = block[:0]
		return context.Cause(ctx)
	}
	err := r.Source.ClicksOfDay(ctx, at, func(row *clickdb.Row) error {
		expired := row.Time.Add(time.Duration(row.RetentionDays) * day).Before(r.Now) // its sums come with those of the day
		if in, isNew := ids.Meet(row.ID); in && isNew && !expired {
			block = append(block, *row)
		}
		if len(block) == maxBlock || ends(row.ID) {
			return flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// ends reports whether a block ends with a click, which depends on the click alone.
func ends(id clicks.EventID) bool {
	x := (id.Instance ^ id.Sequence) * 0x9e3779b97f4a7c15
	return (x>>32)%blockMean == 0
}

// tokenOf names a block by its day and its clicks.
func tokenOf(at time.Time, block []clickdb.Row) string {
	hash := sha256.New()
	var text [16]byte
	for i := range block {
		binary.BigEndian.PutUint64(text[:8], block[i].ID.Instance)
		binary.BigEndian.PutUint64(text[8:], block[i].ID.Sequence)
		_, _ = hash.Write(text[:]) // never fails
	}
	return fmt.Sprintf("refill/%s/%x", at.Format(time.DateOnly), hash.Sum(nil)[:16])
}
