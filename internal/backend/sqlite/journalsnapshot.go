package sqlite

import (
	"context"
	"fmt"

	"curt/internal/backend/coldsql"
	"curt/internal/moderation"
)

var _ moderation.Reader = (*Snapshot)(nil)

const sqlHoldsJournal = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'journal_progress'`

// HasJournal reports whether a curt.db is of a release that has a journal.
func (s *Snapshot) HasJournal() (there bool, err error) {
	err = s.conn.do(func(t *tx) error {
		n, _, err := t.number(sqlHoldsJournal)
		there = n > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("read %s: %w", s.path, undone(err))
	}
	return there, nil
}

// AccountsApart reports whether the accounts of a curt.db, and so its journal, are in a database
// of their own.
func (s *Snapshot) AccountsApart() (apart bool, err error) {
	err = s.conn.do(func(t *tx) (err error) {
		apart, err = t.one(sqlSetting, ignore, coldsql.SettingApart)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("read %s: %w", s.path, undone(err))
	}
	return apart, nil
}

const sqlLastSequence = `SELECT coalesce(max(sequence), 0) FROM journal`

// LastSequence returns the number of the newest entry of the journal of a curt.db; 0 = it
// has none.
func (s *Snapshot) LastSequence() (last uint64, err error) {
	err = s.conn.do(func(t *tx) error {
		n, _, err := t.number(sqlLastSequence)
		last = uint64(n)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the journal of %s: %w", s.path, undone(err))
	}
	return last, nil
}

// Read implements moderation.Reader for the journal of a curt.db.
func (s *Snapshot) Read(ctx context.Context, after uint64, n int) (entries []moderation.Entry, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	err = s.conn.do(func(t *tx) error {
		entries, err = coldsql.Entries(coldTx{t, coldsql.SQLite()}, after, n)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the journal of %s: %w", s.path, undone(err))
	}
	return entries, nil
}

// Progress returns how much of the journal of a curt.db has taken effect.
func (s *Snapshot) Progress(context.Context) (p moderation.Progress, err error) {
	err = s.conn.do(func(t *tx) (err error) {
		p, err = readProgress(t)
		return err
	})
	if err != nil {
		return moderation.Progress{}, fmt.Errorf("read %s: %w", s.path, undone(err))
	}
	return p, nil
}
