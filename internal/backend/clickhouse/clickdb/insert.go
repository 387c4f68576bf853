package clickdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"curt/internal/clicks"
	"curt/internal/clicks/rollup"
	"curt/internal/link"
)

// Row is one click as it is kept.
type Row struct {
	clicks.Click

	ID            clicks.EventID
	Key           link.Key // not read of an orphan: strangers choose what they ask for
	Workspace     string   // for which the click counts too; "" = none
	RetentionDays uint16   // how long it is kept one by one; 0 = 30 days
}

const keepDays = 30

// MaxBlock is the most rows of a block. Up to here one block of ours is one of the server's,
// at every view: larger ones would be cut, at places that need not be the same again.
const MaxBlock = 100_000

// ErrBlock says that a block cannot be inserted, however often it is tried.
var ErrBlock = errors.New("block cannot be inserted")

// Insert adds a block of clicks under a token, which names it for good: by topic,
// partition and offsets, such as "clicks:3:1000-1999".
//
// nil means that every click of the block counts, in the clicks and in all that is added up
// from them, once. After an error, ErrBlock excepted, it may have been inserted, or some of
// the tables may have it: the same rows in the same order MUST be inserted again under the
// same token, which adds what is missing and nothing else. That holds as long as the tables
// remember the token, for the next dedupWindow blocks.
func (d *DB) Insert(ctx context.Context, token string, rows []Row) error {
	switch {
	case token == "":
		return fmt.Errorf("%w: it has no token", ErrBlock)
	case len(rows) == 0:
		return nil
	case len(rows) > MaxBlock:
		return fmt.Errorf("%w: %d rows are more than %d", ErrBlock, len(rows), MaxBlock)
	}
	ctx, cancel := context.WithTimeout(ctx, insertLimit)
	defer cancel()
	batch, err := d.Conn.PrepareBatch(clickhouse.Context(ctx, clickhouse.WithSettings(insertSettings(token))), insertStatement)
	if err != nil {
		return fmt.Errorf("insert block %s: %w", token, Unavailable(ctx, err))
	}
	defer func() { _ = batch.Close() }() // does nothing once it is sent
	if err := fill(batch, rows); err != nil {
		return fmt.Errorf("insert block %s: %w", token, err)
	}
	if err := batch.Send(); err != nil {
		return fmt.Errorf("insert block %s: %w", token, Unavailable(ctx, err))
	}
	return nil
}

// insertSettings make an insert one that can be repeated.
func insertSettings(token string) clickhouse.Settings {
	const unbounded = 1 << 40
	return clickhouse.Settings{
		"insert_deduplicate":                                 1,
		"insert_deduplication_token":                         token,
		"deduplicate_blocks_in_dependent_materialized_views": 1,
		// What is gathered from several inserts has no token of ours.
		"async_insert": 0,
		// What a view makes of a block is one block, too.
		"max_insert_block_size":                              unbounded,
		"min_insert_block_size_rows_for_materialized_views":  unbounded,
		"min_insert_block_size_bytes_for_materialized_views": unbounded,
		"parallel_view_processing":                           0,
		// Clicks of late, and of clocks that are wrong, lie in many days.
		"max_partitions_per_insert_block": 0,
		"max_execution_time":              int(insertLimit / time.Second),
	}
}

const insertStatement = `INSERT INTO clicks (domain, code, time, workspace, instance, sequence, outcome, preview, bot, bot_reason, bot_name,
visitor, country, city, network, referrer_host, device, browser, os, language, trigger,
utm_source, utm_medium, utm_campaign, utm_term, utm_content, keep_days)`

// fill puts the rows into a batch, column by column.
func fill(batch driver.Batch, rows []Row) error {
	n := 0
	var failed error
	add := func(column any) {
		if err := batch.Column(n).Append(column); err != nil && failed == nil {
			failed = fmt.Errorf("%w: column %d: %w", ErrBlock, n, err)
		}
		n++
	}
	add(repeated(rows, func(r *Row) string { return string(r.key().Domain) }))
	add(column(rows, func(r *Row) string { return string(r.key().Code) }))
	add(column(rows, func(r *Row) time.Time { return clamp(r.Time) }))
	add(repeated(rows, (*Row).workspace))
	add(column(rows, func(r *Row) uint64 { return r.ID.Instance }))
	add(column(rows, func(r *Row) uint64 { return r.ID.Sequence }))
	add(column(rows, func(r *Row) uint8 { return uint8(r.Outcome) }))
	add(column(rows, func(r *Row) bool { return r.Preview }))
	add(column(rows, func(r *Row) bool { return r.Bot }))
	add(repeated(rows, func(r *Row) string { return string(r.BotReason) }))
	add(repeated(rows, func(r *Row) string { return r.BotName }))
	add(column(rows, func(r *Row) uint64 { return r.Visitor }))
	for d := range clicks.Dimension(clicks.NumDimensions) {
		add(repeated(rows, func(r *Row) string { return r.Value(d) }))
	}
	add(column(rows, func(r *Row) uint16 {
		if r.RetentionDays == 0 {
			return keepDays
		}
		return r.RetentionDays
	}))
	return failed
}

func column[T any](rows []Row, of func(*Row) T) []T {
	list := make([]T, len(rows))
	for i := range rows {
		list[i] = of(&rows[i])
	}
	return list
}

// repeated is a column of texts of which few differ. The client takes each as an interface,
// which is made once for each text here, and not for each row there.
func repeated(rows []Row, of func(*Row) string) []any {
	list, known := make([]any, len(rows)), map[string]any{}
	last, made := "", any("")
	for i := range rows {
		if text := of(&rows[i]); text != last {
			var is bool
			if made, is = known[text]; !is {
				made = text
				known[text] = made
			}
			last = text
		}
		list[i] = made
	}
	return list
}

func (r *Row) key() link.Key {
	if r.Outcome == clicks.Orphan {
		return link.Key{}
	}
	return r.Key
}

func (r *Row) workspace() string {
	if r.Outcome == clicks.Orphan {
		return ""
	}
	return r.Workspace
}

// clamp brings the time of a clock that is wrong into the range of buckets.
func clamp(t time.Time) time.Time {
	bucket := rollup.BucketAt(rollup.Quarter, t)
	switch start := bucket.Start(); {
	case t.Before(start):
		return start
	case !t.Before(bucket.End()):
		return bucket.End().Add(-time.Millisecond)
	}
	return t
}

// Holds reports whether a click is kept.
func (d *DB) Holds(ctx context.Context, row *Row) (bool, error) {
	ctx, cancel := Bound(ctx)
	defer cancel()
	at, key := clamp(row.Time), row.key()
	var n uint64
	err := d.Conn.QueryRow(ctx, `SELECT count() FROM clicks
WHERE domain = {domain:String} AND code = {code:String} AND instance = {instance:UInt64} AND sequence = {sequence:UInt64}
    AND `+InSpan,
		append(Span(at.Truncate(time.Second), at.Truncate(time.Second).Add(time.Second)),
			clickhouse.Named("domain", string(key.Domain)), clickhouse.Named("code", string(key.Code)),
			clickhouse.Named("instance", fmt.Sprint(row.ID.Instance)), clickhouse.Named("sequence", fmt.Sprint(row.ID.Sequence)))...).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("find a click: %w", Unavailable(ctx, err))
	}
	return n > 0, nil
}
