package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/link"
	"curt/internal/moderation"
)

// Journal is the journal of moderation, and how much of it has taken effect. It shares
// the connections of Links and ends with them.
type Journal struct{ links *Links }

// The contracts that Journal keeps.
var (
	_ moderation.Journal       = Journal{}
	_ moderation.ProgressStore = Journal{}
	_ moderation.Peers         = Journal{}
)

// Journal returns the journal beside the links.
func (s *Links) Journal() Journal { return Journal{s} }

const (
	// maxEntries bounds one read of entries, whose texts are up to 9 KiB each.
	maxEntries = 1000

	sqlChainEnd    = `SELECT n FROM journal_end WHERE n = 1 FOR UPDATE`
	sqlLastEntry   = `SELECT ` + entryColumns + ` FROM journal ORDER BY sequence DESC LIMIT 1`
	sqlInsertEntry = `INSERT INTO journal (` + entryColumns + `)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`
	sqlEntries = `SELECT ` + entryColumns + ` FROM journal WHERE sequence > $1 ORDER BY sequence LIMIT $2`

	newestEntries = ` sequence < $1 AND sequence >= coalesce((SELECT sequence FROM journal WHERE at >= $2 ORDER BY at, sequence LIMIT 1),
	9223372036854775807) ORDER BY sequence DESC LIMIT $3`
	sqlNewestEntries = `SELECT ` + entryColumns + ` FROM journal WHERE` + newestEntries
	sqlEntriesOf     = `SELECT ` + entryColumns + ` FROM journal WHERE kind = $4 AND name = $5 AND` + newestEntries
	sqlEntriesBy     = `SELECT ` + entryColumns + ` FROM journal WHERE actor = $4 AND` + newestEntries
	sqlEntriesOfBoth = `SELECT ` + entryColumns + ` FROM journal WHERE kind = $4 AND name = $5 AND actor = $6 AND` + newestEntries

	sqlStanding = `SELECT ` + entryColumns + ` FROM journal
	WHERE link = $1 AND action IN ('decide', 'answer') AND ($2 = '' OR actor <> $2) ORDER BY sequence DESC LIMIT 1`
	sqlBans = `SELECT ` + entryColumns + ` FROM journal WHERE action IN ('ban', 'lift') ORDER BY sequence`

	sqlEraseEntry = `UPDATE journal SET reason = '', reason_salt = '', evidence = '', evidence_salt = '' WHERE sequence = $1`
)

// Append implements moderation.Journal.
func (j Journal) Append(ctx context.Context, entries ...moderation.Entry) ([]moderation.Entry, error) {
	if err := appendable(entries); err != nil || len(entries) == 0 {
		return nil, err
	}
	var stored []moderation.Entry
	err := j.links.transaction(ctx, func(ctx context.Context, t pgx.Tx) (err error) {
		stored, err = appendEntries(ctx, t, entries)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("append %d entries to the journal: %w", len(entries), err)
	}
	return stored, nil
}

// appendable refuses what the columns cannot hold, too.
func appendable(entries []moderation.Entry) error {
	for i := range entries {
		if e := &entries[i]; strings.ContainsRune(e.Entity.Name+e.Actor, 0) {
			return fmt.Errorf("append to the journal: %w: a name with a NUL, of %s", moderation.ErrInvalid, e.Entity)
		}
	}
	return moderation.Appendable(entries)
}

// appendEntries puts entries behind the last one, in one round trip but for the look at
// that.
func appendEntries(ctx context.Context, t pgx.Tx, entries []moderation.Entry) ([]moderation.Entry, error) {
	if _, err := t.Exec(ctx, sqlChainEnd); err != nil {
		return nil, err
	}
	var last moderation.Entry
	if _, err := one(ctx, t, func(row pgx.Row) (err error) {
		last, err = scanEntry(row)
		return err
	}, sqlLastEntry); err != nil {
		return nil, err
	}
	stored, inserts := slices.Clone(entries), new(pgx.Batch)
	for i := range stored {
		e := &stored[i]
		if e.Sequence = last.Sequence + 1; e.At.Before(last.At) {
			e.At = last.At
		}
		*e = e.Seal(last.Hash)
		inserts.Queue(sqlInsertEntry, entryArgs(e)...)
		last = *e
	}
	return stored, t.SendBatch(ctx, inserts).Close()
}

// Read implements moderation.Journal.
func (j Journal) Read(ctx context.Context, after uint64, n int) ([]moderation.Entry, error) {
	return j.entries(ctx, sqlEntries, int64(min(after, math.MaxInt64)), min(n, maxEntries))
}

// entries runs a query for entries.
func (j Journal) entries(ctx context.Context, query string, args ...any) (entries []moderation.Entry, err error) {
	err = j.links.reading(ctx, func(ctx context.Context, q querier) error {
		entries = nil
		return each(ctx, q, func(row pgx.Row) error {
			e, err := scanEntry(row)
			entries = append(entries, e)
			return err
		}, query, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	return entries, nil
}

// Find implements moderation.Journal.
func (j Journal) Find(ctx context.Context, f moderation.Filter, before uint64, n int) ([]moderation.Entry, error) {
	if before == 0 || before > math.MaxInt64 {
		before = math.MaxInt64
	}
	since := int64(math.MinInt64)
	if !f.Since.IsZero() {
		since = f.Since.Add(time.Millisecond - 1).UnixMilli() // what is of this millisecond is not before it
	}
	query, args := sqlNewestEntries, []any{int64(before), since, min(n, maxEntries)}
	switch entity := f.Entity != (moderation.Entity{}); {
	case entity && f.Actor != "":
		query, args = sqlEntriesOfBoth, append(args, string(f.Entity.Kind), f.Entity.Name, f.Actor)
	case entity:
		query, args = sqlEntriesOf, append(args, string(f.Entity.Kind), f.Entity.Name)
	case f.Actor != "":
		query, args = sqlEntriesBy, append(args, f.Actor)
	}
	return j.entries(ctx, query, args...)
}

// Standing implements moderation.Journal.
func (j Journal) Standing(ctx context.Context, id link.ID) (moderation.Entry, error) {
	found, err := j.entries(ctx, sqlStanding, uuid(id), "")
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("standing decision of link %s: %w", id, moderation.ErrNotFound)
	}
	if err != nil || found[0].Actor != moderation.ActorPolicy {
		return first(found), err
	}
	person, err := j.entries(ctx, sqlStanding, uuid(id), moderation.ActorPolicy)
	return moderation.Stands(found[0], first(person)), err
}

// first returns the first entry, or the zero one.
func first(entries []moderation.Entry) (e moderation.Entry) {
	if len(entries) > 0 {
		e = entries[0]
	}
	return e
}

// Bans implements moderation.Journal. It reads every ban there ever was.
func (j Journal) Bans(ctx context.Context) ([]moderation.Entry, error) {
	all, err := j.entries(ctx, sqlBans)
	if err != nil {
		return nil, err
	}
	return moderation.StandingBans(all), nil
}

// Erase implements moderation.Journal. Erased texts live on in the write-ahead log and in
// backups as long as those are kept.
func (j Journal) Erase(ctx context.Context, sequence uint64, by moderation.Entry) (moderation.Entry, error) {
	if err := appendable([]moderation.Entry{by}); err != nil {
		return moderation.Entry{}, fmt.Errorf("erase entry %d: %w", sequence, err)
	}
	var said []moderation.Entry
	err := j.links.transaction(ctx, func(ctx context.Context, t pgx.Tx) error {
		erased, err := changed(ctx, t, sqlEraseEntry, int64(min(sequence, math.MaxInt64)))
		if err == nil && erased == 0 {
			err = moderation.ErrNotFound
		}
		if err == nil {
			said, err = appendEntries(ctx, t, []moderation.Entry{by})
		}
		return err
	})
	if err != nil {
		return moderation.Entry{}, fmt.Errorf("erase entry %d: %w", sequence, err)
	}
	return said[0], nil
}
