package coldsql

import (
	"context"
	"fmt"

	"curt/internal/moderation"
)

// Lists implements moderation.Lists. A row is a line with the number of the entry that listed it, which
// has author, time and reason.
type Lists struct{ db DB }

var _ moderation.Lists = Lists{}

const (
	sqlEnd       = `SELECT coalesce(max(sequence), 0) FROM journal`
	sqlPutLine   = `INSERT INTO list_lines (kind, name, sequence) VALUES ($1, $2, $3) ON CONFLICT (kind, name) DO NOTHING`
	sqlDropLine  = `DELETE FROM list_lines WHERE kind = $1 AND name = $2`
	sqlAllLines  = `SELECT kind, name, sequence FROM list_lines`
	sqlSizeLines = `SELECT count(*), coalesce(sum(CASE WHEN kind = $1 THEN 1 ELSE 0 END), 0) FROM list_lines`
	sqlLines     = `SELECT j.sequence, j.at, j.kind, j.name, j.link, j.action, j.safety, j.score, j.actor,
	j.reason, j.reason_salt, j.reason_hash, j.evidence, j.evidence_salt, j.evidence_hash, j.hash
	FROM list_lines l {join} journal j ON j.sequence = l.sequence WHERE l.kind = $1 AND l.name > $2 ORDER BY l.name LIMIT $3`
)

// Change implements moderation.Lists.
func (s Lists) Change(ctx context.Context, entries ...moderation.Entry) ([]moderation.Entry, error) {
	if err := moderation.Appendable(entries); err != nil {
		return nil, err
	}
	for i := range entries {
		if a := entries[i].Action; a != moderation.ActionList && a != moderation.ActionUnlist {
			return nil, fmt.Errorf("change lists: %w: action %s", moderation.ErrInvalid, a)
		}
	}
	var stored []moderation.Entry
	err := s.db.Write(ctx, 2*len(entries), func(t Tx) (err error) {
		stored, err = changeLines(t, entries)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("change %d lines of lists: %w", len(entries), err)
	}
	return stored, nil
}

// changeLines changes rows and appends the entries of those that it changed. The end of the journal
// is locked first: rows have the numbers that their entries get.
func changeLines(t Tx, entries []moderation.Entry) ([]moderation.Entry, error) {
	if _, err := Exists(t, sqlChain); err != nil {
		return nil, err
	}
	var next int64
	if _, err := One(t, sqlEnd, func(r *Row) { next = r.Int() }); err != nil {
		return nil, err
	}
	changed, listed := make([]moderation.Entry, 0, len(entries)), false
	for i := range entries {
		e := &entries[i]
		statement, args := sqlDropLine, []any{string(e.Entity.Kind), e.Entity.Name}
		if e.Action == moderation.ActionList {
			statement, args = sqlPutLine, append(args, next+1)
		}
		n, err := t.Exec(statement, args...)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			next++
			changed, listed = append(changed, *e), listed || e.Action == moderation.ActionList
		}
	}
	if len(changed) == 0 {
		return nil, nil
	}
	if listed {
		if err := checkSize(t); err != nil {
			return nil, err
		}
	}
	return appendEntries(t, changed)
}

// checkSize returns ErrFull when the rows of a transaction are too many.
func checkSize(t Tx) error {
	var all, lookAlikes int64
	if _, err := One(t, sqlSizeLines, func(r *Row) { all, lookAlikes = r.Int(), r.Int() }, string(moderation.KindLookAlike)); err != nil {
		return err
	}
	if all > moderation.MaxListLines || lookAlikes > moderation.MaxLookAlikes {
		return moderation.ErrListsFull
	}
	return nil
}

// Lines implements moderation.Lists.
func (s Lists) Lines(ctx context.Context, kind moderation.Kind, after string, n int) ([]moderation.Entry, error) {
	found, err := Journal(s).entries(ctx, s.db.ReadMany, sqlLines, string(kind), after, int64(min(n, maxEntries)))
	if err != nil {
		return nil, fmt.Errorf("read the list %s: %w", kind, err)
	}
	return found, nil
}

// Load implements moderation.Lists. The end of the journal is read before the lines, which may be newer.
func (s Lists) Load(ctx context.Context) (lines map[moderation.Entity]uint64, complete uint64, err error) {
	err = s.db.ReadMany(ctx, func(t Tx) error {
		lines = map[moderation.Entity]uint64{}
		if _, err := One(t, sqlEnd, func(r *Row) { complete = uint64(r.Int()) }); err != nil {
			return err
		}
		return Each(t, sqlAllLines, func(r *Row) {
			e := moderation.Entity{Kind: moderation.Kind(r.Text()), Name: r.Text()}
			lines[e] = uint64(r.Int())
		})
	})
	if err != nil {
		return nil, 0, fmt.Errorf("load lists: %w", err)
	}
	return lines, complete, nil
}
