package accounts

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres/pgdb"
	"curt/internal/moderation"
)

// progresses returns what instances have kept.
func (j Journal) progresses(ctx context.Context, query string, args ...any) (all []moderation.Left, err error) {
	err = j.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		all = nil
		return pgdb.Each(ctx, q, func(row pgx.Row) error {
			var l moderation.Left
			var text string
			if err := row.Scan(&l.Name, &l.StoredAt, &text); err != nil {
				return err
			}
			err := json.Unmarshal([]byte(text), &l.Progress)
			all = append(all, l)
			return err
		}, query, args...)
	})
	return all, err
}

const sqlProgress = `SELECT name, kept, progress FROM instances`

// Progress implements moderation.ProgressStore.
func (j Journal) Progress(ctx context.Context) (p moderation.Progress, err error) {
	all, err := j.progresses(ctx, sqlProgress)
	if err != nil {
		return p, fmt.Errorf("read the progress of the journal: %w", err)
	}
	for i := range all {
		if all[i].Name == j.instance {
			return all[i].Progress, nil
		}
		if applied := all[i].Progress.Applied; i == 0 || applied < p.Applied {
			p.Applied = applied
		}
	}
	return p, nil
}

const sqlKeepProgress = `INSERT INTO instances (name, kept, progress) VALUES ($1, now(), $2)
	ON CONFLICT (name) DO UPDATE SET kept = excluded.kept, progress = excluded.progress`

// StoreProgress implements moderation.ProgressStore.
func (j Journal) StoreProgress(ctx context.Context, p moderation.Progress) error {
	text, err := json.Marshal(p)
	if err == nil {
		err = j.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) error {
			_, err := q.Exec(ctx, sqlKeepProgress, j.instance, string(text))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("store the progress of the journal: %w", err)
	}
	return nil
}

const sqlSilent = sqlProgress + ` WHERE name <> $1 AND kept < now() - $2::interval`

// Silent implements moderation.Peers.
func (j Journal) Silent(ctx context.Context) ([]moderation.Left, error) {
	left, err := j.progresses(ctx, sqlSilent, j.instance, moderation.SilentFor)
	if err != nil {
		return nil, fmt.Errorf("find stopped instances: %w", err)
	}
	return left, nil
}

const sqlForget = `DELETE FROM instances WHERE name = $1 AND kept = $2`

// Forget implements moderation.Peers.
func (j Journal) Forget(ctx context.Context, l moderation.Left) error {
	err := j.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) error {
		_, err := q.Exec(ctx, sqlForget, l.Name, l.StoredAt)
		return err
	})
	if err != nil {
		return fmt.Errorf("forget instance %s: %w", l.Name, err)
	}
	return nil
}
