package accounts

import (
	"context"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/sqlite/snapshot"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/moderation"
)

var _ moderation.Reader = StoredJournal{}

// StoredJournal is the journal of a snapshot of curt.db.
type StoredJournal struct{ db *snapshot.Snapshot }

// JournalIn returns the journal of a snapshot of curt.db.
func JournalIn(s *snapshot.Snapshot) StoredJournal { return StoredJournal{s} }

// Tx is a transaction of curt.db as a coldsql.Tx.
func Tx(t *sqlitedb.Tx) coldsql.Tx { return accountsTx{t, coldsql.SQLite()} }

const sqlHoldsJournal = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'journal_progress'`

// HasJournal reports whether a curt.db is of a release that has a journal.
func (s StoredJournal) HasJournal() (there bool, err error) {
	err = s.db.View("read", func(t *sqlitedb.Tx) error {
		n, _, err := t.Number(sqlHoldsJournal)
		there = n > 0
		return err
	})
	return there, err
}

const sqlApart = `SELECT 1 FROM settings WHERE name = ?`

// AccountsApart reports whether the accounts of a curt.db, and so its journal, are in a database
// of their own.
func (s StoredJournal) AccountsApart() (apart bool, err error) {
	err = s.db.View("read", func(t *sqlitedb.Tx) (err error) {
		apart, err = t.One(sqlApart, sqlitedb.Ignore, coldsql.SettingApart)
		return err
	})
	return apart, err
}

const sqlLastSequence = `SELECT coalesce(max(sequence), 0) FROM journal`

// LastSequence returns the number of the newest entry of the journal of a curt.db; 0 = it
// has none.
func (s StoredJournal) LastSequence() (last uint64, err error) {
	err = s.db.View("read the journal of", func(t *sqlitedb.Tx) error {
		n, _, err := t.Number(sqlLastSequence)
		last = uint64(n)
		return err
	})
	return last, err
}

// Read implements moderation.Reader for the journal of a curt.db.
func (s StoredJournal) Read(ctx context.Context, after uint64, n int) (entries []moderation.Entry, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	err = s.db.View("read the journal of", func(t *sqlitedb.Tx) error {
		entries, err = coldsql.Entries(accountsTx{t, coldsql.SQLite()}, after, n)
		return err
	})
	return entries, err
}

// Progress returns how much of the journal of a curt.db has taken effect.
func (s StoredJournal) Progress(context.Context) (p moderation.Progress, err error) {
	err = s.db.View("read", func(t *sqlitedb.Tx) (err error) {
		p, err = readProgress(t)
		return err
	})
	return p, err
}
