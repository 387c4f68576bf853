package accounts

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/moderation"
)

// Journal is the journal of moderation in curt.db, and how much of it has taken effect.
type Journal struct {
	coldsql.Journal
	db *sqlitedb.Store
}

// The contracts that Journal keeps.
var (
	_ moderation.Journal       = Journal{}
	_ moderation.ProgressStore = Journal{}
)

const (
	sqlProgress     = `SELECT progress FROM journal_progress WHERE n = 1`
	sqlKeepProgress = `INSERT OR REPLACE INTO journal_progress (n, progress) VALUES (1, ?)`
)

// Statements are those that a request runs, by name, for whom their plans interest.
func Statements() map[string]string {
	return map[string]string{"progress": sqlProgress, "keep progress": sqlKeepProgress}
}

// Erase implements moderation.Journal. Erased texts are overwritten in the file, and cut
// out of the write-ahead log.
func (j Journal) Erase(ctx context.Context, sequence uint64, by moderation.Entry) (moderation.Entry, error) {
	said, err := j.Journal.Erase(ctx, sequence, by)
	if err == nil {
		j.db.Scrub(ctx)
	}
	return said, err
}

// Progress implements moderation.ProgressStore.
func (j Journal) Progress(ctx context.Context) (p moderation.Progress, err error) {
	err = j.db.Read(ctx, func(t *sqlitedb.Tx) (err error) {
		p, err = readProgress(t)
		return err
	})
	if err != nil {
		return moderation.Progress{}, fmt.Errorf("read the progress of the journal: %w", err)
	}
	return p, nil
}

func readProgress(t *sqlitedb.Tx) (p moderation.Progress, err error) {
	_, err = t.One(sqlProgress, func(row []driver.Value) error {
		s := sqlitedb.Scanner{Row: row}
		if text := s.Text(); json.Unmarshal([]byte(text), &p) != nil {
			s.Bad = true
		}
		return s.Damage()
	})
	return p, err
}

// StoreProgress implements moderation.ProgressStore.
func (j Journal) StoreProgress(ctx context.Context, p moderation.Progress) error {
	text, err := json.Marshal(p)
	if err == nil {
		err = j.db.Write(ctx, 1, func(t *sqlitedb.Tx) error {
			_, err := t.Exec(sqlKeepProgress, string(text))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("store the progress of the journal: %w", err)
	}
	return nil
}
