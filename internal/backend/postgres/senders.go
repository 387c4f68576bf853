package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres/pgdb"
	"curt/internal/clicks/ship"
)

// Senders are the servers that may hold clicks which nobody else has. A server that has begun to
// take clicks MUST have been enlisted before, or whoever shows statistics does not wait for it.
type Senders struct{ db *pgdb.Database }

// Senders returns those that are kept beside the links.
func (s *Links) Senders() Senders { return Senders{s.db} }

// A clock that is ahead when a server starts may come back before its first click, so
// that of the database bounds the time. Who begins again in the same life changes nothing
// but that time, and what an operator said of the life before says nothing of the next.
const sqlEnlist = `INSERT INTO click_senders AS s (folder, host, instance, began)
	VALUES ($1, $2, $3, least($4::bigint, floor(extract(epoch FROM now()) * 1000)::bigint))
	ON CONFLICT (folder) DO UPDATE SET host = excluded.host, instance = excluded.instance,
		began = CASE WHEN s.instance = excluded.instance THEN least(s.began, excluded.began) ELSE excluded.began END,
		forgotten = CASE WHEN s.instance = excluded.instance THEN s.forgotten END
	WHERE s.instance <> excluded.instance OR s.began > excluded.began`

// Enlist writes down a sender, in the place of the one that its folder had. It may be repeated.
func (s Senders) Enlist(ctx context.Context, one ship.Sender) error {
	err := s.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) error {
		_, err := q.Exec(ctx, sqlEnlist, one.Folder, one.Host, int64(one.Instance), max(0, one.Began.UnixMilli()))
		return err
	})
	if err != nil {
		return fmt.Errorf("register sender %s: %w", one.Folder, err)
	}
	return nil
}

const sqlSenders = `SELECT folder, host, instance, began, forgotten FROM click_senders ORDER BY folder`

// All returns the senders by the names of their folders. Whoever is not among them takes its
// first click later than this was asked.
func (s Senders) All(ctx context.Context) (all []ship.Sender, err error) {
	err = s.db.Read(ctx, func(ctx context.Context, q pgdb.Querier) error {
		all = nil
		return pgdb.Each(ctx, q, func(row pgx.Row) error {
			var one ship.Sender
			var instance, began int64
			var forgotten *time.Time
			if err := row.Scan(&one.Folder, &one.Host, &instance, &began, &forgotten); err != nil {
				return err
			}
			one.Instance, one.Began = uint64(instance), time.UnixMilli(began).UTC()
			if forgotten != nil {
				one.Forgotten = forgotten.UTC()
			}
			all = append(all, one)
			return nil
		}, sqlSenders)
	})
	if err != nil {
		return nil, fmt.Errorf("list senders: %w", err)
	}
	return all, nil
}

const sqlDismiss = `DELETE FROM click_senders WHERE folder = $1 AND instance = $2`

// Dismiss removes a sender all of whose clicks are counted, unless its folder lives again.
func (s Senders) Dismiss(ctx context.Context, one ship.Sender) error {
	err := s.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) error {
		_, err := q.Exec(ctx, sqlDismiss, one.Folder, int64(one.Instance))
		return err
	})
	if err != nil {
		return fmt.Errorf("mark sender %s complete: %w", one.Folder, err)
	}
	return nil
}

const sqlForgetSender = `UPDATE click_senders SET forgotten = now() WHERE folder = $1`

// Forget notes that an operator waits for no more clicks of a folder; false = there is no such
// sender. It holds until the sender is heard of again, or begins another life.
func (s Senders) Forget(ctx context.Context, folder string) (found bool, err error) {
	err = s.db.Write(ctx, func(ctx context.Context, q pgdb.Querier) error {
		n, err := pgdb.Changed(ctx, q, sqlForgetSender, folder)
		found = n > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("forget sender %s: %w", folder, err)
	}
	return found, nil
}

// OpenSenders returns the senders that a database knows, for who is no server, and migrates nothing there:
// pgdb.ErrNotMigrated if it is not of this release. end closes the connections.
func OpenSenders(ctx context.Context, url string) (s Senders, end func(), err error) {
	db := pgdb.New(pgdb.LinksHealth(true), 1, slog.New(slog.DiscardHandler))
	if err := db.ConnectAsIs(ctx, url, 1, 1); err != nil {
		db.ClosePools()
		return s, nil, fmt.Errorf("open the senders: %w", err)
	}
	return Senders{db}, db.ClosePools, nil
}
