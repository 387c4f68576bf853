package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"curt/internal/backend/coldsql"
	"curt/internal/moderation"
)

// Journal is the journal of moderation in curt.db, and how much of it has taken effect.
type Journal struct {
	coldsql.Journal
	links *Links
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

// Erase implements moderation.Journal. Erased texts are overwritten in the file, and cut
// out of the write-ahead log.
func (j Journal) Erase(ctx context.Context, sequence uint64, by moderation.Entry) (moderation.Entry, error) {
	said, err := j.Journal.Erase(ctx, sequence, by)
	if err == nil {
		j.links.scrub.Store(true)
		_ = j.links.checkpoint(ctx, sqlTruncateWAL) // what fails here, Run and Close do again
	}
	return said, err
}

// Progress implements moderation.ProgressStore.
func (j Journal) Progress(ctx context.Context) (p moderation.Progress, err error) {
	err = j.links.read(ctx, func(t *tx) (err error) {
		p, err = readProgress(t)
		return err
	})
	if err != nil {
		return moderation.Progress{}, fmt.Errorf("read the progress of the journal: %w", err)
	}
	return p, nil
}

func readProgress(t *tx) (p moderation.Progress, err error) {
	_, err = t.one(sqlProgress, func(row []driver.Value) error {
		s := scanner{row: row}
		if text := s.text(); json.Unmarshal([]byte(text), &p) != nil {
			s.bad = true
		}
		return s.damage()
	})
	return p, err
}

// KeepProgress implements moderation.ProgressStore.
func (j Journal) KeepProgress(ctx context.Context, p moderation.Progress) error {
	text, err := json.Marshal(p)
	if err == nil {
		err = j.links.writer.write(ctx, 1, func(t *tx) error {
			_, err := t.exec(sqlKeepProgress, string(text))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("keep the progress of the journal: %w", err)
	}
	return nil
}
