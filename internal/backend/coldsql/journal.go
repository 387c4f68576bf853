package coldsql

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"curt/internal/link"
	"curt/internal/moderation"
)

// Journal implements moderation.Journal.
type Journal struct{ db DB }

var _ moderation.Journal = Journal{}

const (
	// maxEntries bounds one read of entries, whose texts are up to 9 KiB each.
	maxEntries = 1000

	entryColumns = `sequence, at, kind, name, link, action, safety, score, actor,
	reason, reason_salt, reason_hash, evidence, evidence_salt, evidence_hash, hash`

	sqlChain       = `{chain}`
	sqlLastEntry   = `SELECT ` + entryColumns + ` FROM journal WHERE sequence = (SELECT max(sequence) FROM journal)`
	sqlInsertEntry = `INSERT INTO journal (` + entryColumns + `)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`
	sqlEntries = `SELECT ` + entryColumns + ` FROM journal WHERE sequence > $1 ORDER BY sequence LIMIT $2`

	newestEntries = ` sequence < $1 AND sequence >= coalesce((SELECT sequence FROM journal WHERE at >= $2 ORDER BY at, sequence LIMIT 1),
	9223372036854775807) ORDER BY sequence DESC LIMIT $3`
	sqlNewestEntries = `SELECT ` + entryColumns + ` FROM journal WHERE` + newestEntries
	sqlEntriesOf     = `SELECT ` + entryColumns + ` FROM journal WHERE kind = $4 AND name = $5 AND` + newestEntries
	sqlEntriesBy     = `SELECT ` + entryColumns + ` FROM journal WHERE actor = $4 AND` + newestEntries
	sqlEntriesOfBoth = `SELECT ` + entryColumns + ` FROM journal {by journal_by_entity} WHERE kind = $4 AND name = $5 AND actor = $6 AND` + newestEntries

	sqlStanding = `SELECT ` + entryColumns + ` FROM journal
	WHERE link = $1 AND action IN ('decide', 'answer') AND ($2 = '' OR actor <> $2) ORDER BY sequence DESC LIMIT 1`
	sqlBans = `SELECT ` + entryColumns + ` FROM journal {by journal_bans} WHERE action IN ('ban', 'lift') ORDER BY sequence`

	sqlVerdicts   = `SELECT ` + entryColumns + ` FROM journal {by journal_verdicts} WHERE kind = 'destination' AND action IN ('decide', 'answer') ORDER BY sequence`
	sqlEraseEntry = `UPDATE journal SET reason = '', reason_salt = $2, evidence = '', evidence_salt = $2 WHERE sequence = $1`
)

func entryArgs(e *moderation.Entry) []any {
	args := []any{
		int64(e.Sequence), e.At.UnixMilli(), string(e.Entity.Kind), e.Entity.Name, OptionalID(e.Link),
		string(e.Action), int64(e.Safety), int64(e.Score), e.Actor,
	}
	for _, t := range []*moderation.Text{&e.Reason, &e.Evidence} {
		salt, commitment := t.Salt[:], t.Commitment[:]
		if t.Erased || *t == (moderation.Text{}) {
			salt = []byte{}
		}
		if *t == (moderation.Text{}) {
			commitment = []byte{}
		}
		args = append(args, Text(t.Body), salt, commitment)
	}
	return append(args, e.Hash[:])
}

// readEntry reads entryColumns. What an entry says is not checked here but by
// moderation.Verify.
func readEntry(r *Row) (e moderation.Entry) {
	e.Sequence, e.At = uint64(r.Int()), time.UnixMilli(r.Int()).UTC() // 0 is the epoch
	e.Entity = moderation.Entity{Kind: moderation.Kind(r.Text()), Name: r.Text()}
	r.Fill(e.Link[:], true)
	e.Action = moderation.Action(r.Text())
	e.Safety, e.Score, e.Actor = link.Safety(r.Int()), int(r.Int()), r.Text()
	for _, t := range []*moderation.Text{&e.Reason, &e.Evidence} {
		t.Body = r.Text()
		salted := r.Fill(t.Salt[:], true)
		t.Erased = r.Fill(t.Commitment[:], true) && !salted
	}
	r.Fill(e.Hash[:], false)
	return e
}

// Append implements moderation.Journal.
func (j Journal) Append(ctx context.Context, entries ...moderation.Entry) ([]moderation.Entry, error) {
	if err := moderation.Appendable(entries); err != nil || len(entries) == 0 {
		return nil, err
	}
	var stored []moderation.Entry
	err := j.db.Write(ctx, len(entries), func(t Tx) (err error) {
		stored, err = appendEntries(t, entries)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("append %d entries to the journal: %w", len(entries), err)
	}
	return stored, nil
}

// appendEntries puts entries behind the last one.
func appendEntries(t Tx, entries []moderation.Entry) ([]moderation.Entry, error) {
	if _, err := Exists(t, sqlChain); err != nil {
		return nil, err
	}
	var last moderation.Entry
	if _, err := One(t, sqlLastEntry, func(r *Row) { last = readEntry(r) }); err != nil {
		return nil, err
	}
	stored, inserts := slices.Clone(entries), make([][]any, len(entries))
	for i := range stored {
		e := &stored[i]
		if e.Sequence = last.Sequence + 1; e.At.Before(last.At) {
			e.At = last.At
		}
		*e = e.Seal(last.Hash)
		inserts[i] = entryArgs(e)
		last = *e
	}
	return stored, t.ExecMany(sqlInsertEntry, inserts)
}

// Read implements moderation.Journal.
func (j Journal) Read(ctx context.Context, after uint64, n int) ([]moderation.Entry, error) {
	return j.entries(ctx, j.db.Read, sqlEntries, entriesArgs(after, n)...)
}

// Entries is Journal.Read for tables that no DB is made of.
func Entries(t Tx, after uint64, n int) (all []moderation.Entry, err error) {
	err = Each(t, sqlEntries, func(r *Row) { all = append(all, readEntry(r)) }, entriesArgs(after, n)...)
	return all, err
}

func entriesArgs(after uint64, n int) []any {
	return []any{int64(min(after, math.MaxInt64)), int64(min(n, maxEntries))}
}

// entries runs a query for entries.
func (Journal) entries(ctx context.Context, read func(context.Context, func(Tx) error) error, query string, args ...any) (all []moderation.Entry, err error) {
	err = read(ctx, func(t Tx) error {
		all = nil
		return Each(t, query, func(r *Row) { all = append(all, readEntry(r)) }, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	return all, nil
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
	query, args := sqlNewestEntries, []any{int64(before), since, int64(min(n, maxEntries))}
	switch entity := f.Entity != (moderation.Entity{}); {
	case entity && f.Actor != "":
		query, args = sqlEntriesOfBoth, append(args, string(f.Entity.Kind), f.Entity.Name, f.Actor)
	case entity:
		query, args = sqlEntriesOf, append(args, string(f.Entity.Kind), f.Entity.Name)
	case f.Actor != "":
		query, args = sqlEntriesBy, append(args, f.Actor)
	}
	return j.entries(ctx, j.db.ReadMany, query, args...)
}

// EffectiveDecision implements moderation.Journal.
func (j Journal) EffectiveDecision(ctx context.Context, id link.ID) (moderation.Entry, error) {
	found, err := j.entries(ctx, j.db.Read, sqlStanding, id, "")
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("effective decision of link %s: %w", id, moderation.ErrNotFound)
	}
	if err != nil || found[0].Actor != moderation.ActorPolicy {
		return first(found), err
	}
	person, err := j.entries(ctx, j.db.Read, sqlStanding, id, moderation.ActorPolicy)
	return moderation.Prevailing(found[0], first(person)), err
}

// first returns the first entry, or the zero one.
func first(all []moderation.Entry) (e moderation.Entry) {
	if len(all) > 0 {
		e = all[0]
	}
	return e
}

// Bans implements moderation.Journal. It reads every ban there ever was.
func (j Journal) Bans(ctx context.Context) ([]moderation.Entry, error) {
	all, err := j.entries(ctx, j.db.Read, sqlBans)
	if err != nil {
		return nil, err
	}
	return moderation.ActiveBans(all), nil
}

// Verdicts implements moderation.Journal. It reads every decision about a destination that there ever was.
func (j Journal) Verdicts(ctx context.Context) ([]moderation.Entry, error) {
	return j.entries(ctx, j.db.ReadMany, sqlVerdicts)
}

// Erase implements moderation.Journal.
func (j Journal) Erase(ctx context.Context, sequence uint64, by moderation.Entry) (moderation.Entry, error) {
	if err := moderation.Appendable([]moderation.Entry{by}); err != nil {
		return moderation.Entry{}, fmt.Errorf("erase entry %d: %w", sequence, err)
	}
	var said []moderation.Entry
	err := j.db.Write(ctx, 2, func(t Tx) error {
		erased, err := t.Exec(sqlEraseEntry, int64(min(sequence, math.MaxInt64)), []byte{})
		if err == nil && erased == 0 {
			err = moderation.ErrNotFound
		}
		if err == nil {
			said, err = appendEntries(t, []moderation.Entry{by})
		}
		return err
	})
	if err != nil {
		return moderation.Entry{}, fmt.Errorf("erase entry %d: %w", sequence, err)
	}
	return said[0], nil
}
