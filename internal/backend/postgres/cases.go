package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"curt/internal/link"
	"curt/internal/moderation"
)

// Cases is the review queue beside the links. It shares their connections and ends with
// them.
//
// Whoever changes the open case of a link holds its row until the commit, and whoever
// follows the journal holds the row of the position first.
type Cases struct{ links *Links }

var _ moderation.Cases = Cases{}

// Cases returns the review queue beside the links.
func (s *Links) Cases() Cases { return Cases{s} }

const (
	caseColumns = `id, link, domain, code, workspace, host, sources, score, opened, due,
	reports, by_category, first, last, closed, decided_by, decided, sequence`

	sqlOpenCase  = `SELECT ` + caseColumns + ` FROM cases WHERE link = $1 AND closed = 0 FOR UPDATE`
	sqlCase      = `SELECT ` + caseColumns + ` FROM cases WHERE id = $1`
	sqlLinkCase  = `SELECT ` + caseColumns + ` FROM cases WHERE link = $1 AND workspace <> '' ORDER BY closed = 0 DESC, closed DESC, id DESC LIMIT 1`
	sqlTakenCase = `SELECT 1 FROM cases WHERE link = $1 AND sequence = $2 AND closed <> 0`
	sqlJoinCase  = `INSERT INTO cases AS old (id, link, domain, code, workspace, host, sources, score, opened, due)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
	ON CONFLICT (link) WHERE closed = 0 DO UPDATE SET
		workspace = CASE old.workspace WHEN '' THEN excluded.workspace ELSE old.workspace END,
		host = CASE old.workspace WHEN '' THEN excluded.host ELSE old.host END,
		sources = old.sources | excluded.sources, score = greatest(old.score, excluded.score)
	RETURNING id`
	// What an entry says that a decision has overtaken belongs to the case that it closed.
	sqlJoinLater = `UPDATE cases SET workspace = CASE workspace WHEN '' THEN $3 ELSE workspace END,
	host = CASE workspace WHEN '' THEN $4 ELSE host END, sources = sources | $5, score = greatest(score, $6)
	WHERE id = (SELECT id FROM cases WHERE link = $1 AND closed <> 0 AND sequence > $2 ORDER BY sequence LIMIT 1) RETURNING id`
	sqlCloseCase = `UPDATE cases SET closed = $2, decided_by = $3, decided = $4, sequence = $5 WHERE id = $1`
	sqlCountCase = `UPDATE cases SET reports = reports + 1, by_category[$2::int] = by_category[$2::int] + 1,
	first = CASE first WHEN 0 THEN $3 ELSE first END, last = $3 WHERE id = $1`
	sqlDescribeCase = `UPDATE cases SET workspace = $2, host = $3 WHERE id = $1 AND workspace = ''`
	sqlDropCase     = `DELETE FROM cases WHERE id = $1 AND workspace = ''`

	sqlInsertNote = `INSERT INTO case_notes (case_id, at, category, text, contact, erased) VALUES ($1, $2, $3, $4, $5, false)`
	sqlDropNotes  = `DELETE FROM case_notes WHERE case_id = $1 AND n <=
	(SELECT n FROM case_notes WHERE case_id = $1 ORDER BY n DESC LIMIT 1 OFFSET $2)`

	// Who comes late, on a day before the newest, is not counted; nor is who is unknown.
	sqlCountNetwork = `WITH newest AS (
	SELECT greatest($2, coalesce(max(day), 0)) AS day FROM case_networks WHERE case_id = $1
), known AS (
	SELECT count(*) AS many FROM case_networks JOIN newest USING (day) WHERE case_id = $1
), added AS (
	INSERT INTO case_networks (case_id, day, digest) SELECT $1, $2, $3 FROM newest CROSS JOIN known
	WHERE newest.day = $2 AND $3::bigint <> 0 AND known.many < $4 ON CONFLICT DO NOTHING RETURNING digest
)
SELECT known.many + (SELECT count(*) FROM added) FROM known`
	sqlDropNetworks = `DELETE FROM case_networks WHERE case_id = $1 AND day < $2`

	sqlPosition     = `SELECT position FROM followers WHERE name = 'cases'`
	sqlLockPosition = sqlPosition + ` FOR UPDATE`
	sqlMovePosition = `UPDATE followers SET position = $1 WHERE name = 'cases'`

	farAway = int64(1) << 62 // a day that never comes
)

// scanCase reads caseColumns.
func scanCase(row pgx.Row) (c moderation.Case, err error) {
	var id, linkID pgtype.UUID
	var sources, score, decided int16
	var opened, due, reports, first, last, closed, sequence int64
	var by []int64
	err = row.Scan(&id, &linkID, (*string)(&c.Link.Key.Domain), (*string)(&c.Link.Key.Code), (*string)(&c.Workspace), &c.Host,
		&sources, &score, &opened, &due, &reports, &by, &first, &last, &closed, &c.DecidedBy, &decided, &sequence)
	c.ID, c.Link.ID = id.Bytes, linkID.Bytes
	c.Sources, c.Score, c.Opened, c.Due = moderation.Sources(sources), int(score), timeOf(opened), timeOf(due)
	c.Reports.Count, c.Reports.First, c.Reports.Last = int(reports), timeOf(first), timeOf(last)
	for i := range min(len(by), len(c.Reports.By)) {
		c.Reports.By[i] = int(by[i])
	}
	c.Closed, c.Decided, c.Sequence = timeOf(closed), link.Safety(decided), uint64(sequence)
	return c, err
}

// oneCase reads the first case of a query.
func oneCase(ctx context.Context, q querier, query string, id link.ID) (c moderation.Case, found bool, err error) {
	found, err = one(ctx, q, func(row pgx.Row) (err error) {
		c, err = scanCase(row)
		return err
	}, query, uuid(id))
	return c, found, err
}

// joinCase opens a case or joins the one that it belongs to, and returns its id.
func joinCase(ctx context.Context, t pgx.Tx, o *moderation.Opening) (link.ID, error) {
	var id pgtype.UUID
	if o.Sequence > 0 {
		// Whoever closes the open case now is waited for, and then seen.
		if _, _, err := oneCase(ctx, t, sqlOpenCase, o.Link.ID); err != nil {
			return link.ID{}, err
		}
		joined, err := one(ctx, t, func(row pgx.Row) error { return row.Scan(&id) }, sqlJoinLater,
			uuid(o.Link.ID), int64(o.Sequence), string(o.Facts.Workspace), o.Facts.Host, int16(o.Source), int16(o.Score))
		if err != nil || joined {
			return id.Bytes, err
		}
	}
	err := t.QueryRow(ctx, sqlJoinCase, uuid(o.ID), uuid(o.Link.ID), string(o.Link.Key.Domain), string(o.Link.Key.Code),
		string(o.Facts.Workspace), o.Facts.Host, int16(o.Source), int16(o.Score), millis(o.At), millis(o.Due)).Scan(&id)
	return id.Bytes, err
}

// closeCase is a Closing; found is false when it closed nothing.
func closeCase(ctx context.Context, t pgx.Tx, c *moderation.Closing) (closed moderation.Case, found bool, err error) {
	open, found, err := oneCase(ctx, t, sqlOpenCase, c.Link.ID)
	if err != nil || !found || open.Opened.After(c.At) {
		return closed, false, err
	}
	var taken int
	if found, err := one(ctx, t, func(row pgx.Row) error { return row.Scan(&taken) },
		sqlTakenCase, uuid(c.Link.ID), int64(c.Sequence)); err != nil || found {
		return closed, false, err
	}
	if later, err := answerAppeal(ctx, t, c); err != nil || later {
		return closed, false, err
	}
	if _, err := t.Exec(ctx, sqlCloseCase, uuid(open.ID), millis(c.At), c.By, int16(c.Safety), int64(c.Sequence)); err != nil {
		return closed, false, err
	}
	if _, err := t.Exec(ctx, sqlDropNetworks, uuid(open.ID), farAway); err != nil {
		return closed, false, err
	}
	return oneCase(ctx, t, sqlCase, open.ID)
}

// Position implements moderation.Cases.
func (s Cases) Position(ctx context.Context) (uint64, error) {
	var at int64
	err := s.links.reading(ctx, func(ctx context.Context, q querier) error { return q.QueryRow(ctx, sqlPosition).Scan(&at) })
	if err != nil {
		return 0, fmt.Errorf("read the position of the cases: %w", err)
	}
	return uint64(at), nil
}

// Follow implements moderation.Cases.
func (s Cases) Follow(ctx context.Context, after, to uint64, steps []moderation.Step) (closed []moderation.Case, err error) {
	err = s.links.transaction(ctx, func(ctx context.Context, t pgx.Tx) error {
		closed = nil // a transaction may be repeated
		var at int64
		if err := t.QueryRow(ctx, sqlLockPosition).Scan(&at); err != nil {
			return err
		}
		if uint64(at) != after {
			return link.ErrConflict
		}
		for i := range steps {
			if err := followStep(ctx, t, &steps[i], &closed); err != nil {
				return err
			}
		}
		_, err := t.Exec(ctx, sqlMovePosition, int64(to))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("follow the journal from %d: %w", after, err)
	}
	return closed, nil
}

func followStep(ctx context.Context, t pgx.Tx, s *moderation.Step, closed *[]moderation.Case) error {
	if s.Open != nil {
		_, err := joinCase(ctx, t, s.Open)
		return err
	}
	c, found, err := closeCase(ctx, t, s.Close)
	if err == nil && found {
		*closed = append(*closed, c)
	}
	return err
}

// Close implements moderation.Cases.
func (s Cases) Close(ctx context.Context, c moderation.Closing) (closed moderation.Case, err error) {
	err = s.links.transaction(ctx, func(ctx context.Context, t pgx.Tx) error {
		var found bool
		if closed, found, err = closeCase(ctx, t, &c); err == nil && !found {
			err = moderation.ErrNoCase
		}
		return err
	})
	if err != nil {
		return moderation.Case{}, fmt.Errorf("close the case of %s: %w", c.Link.Key, err)
	}
	return closed, nil
}

// Report implements moderation.Cases: what is to be done goes in one round trip, once the
// case is known and locked.
func (s Cases) Report(ctx context.Context, r moderation.Report) (stands moderation.Case, networks int, err error) {
	err = s.links.transaction(ctx, func(ctx context.Context, t pgx.Tx) error {
		id, err := joinCase(ctx, t, &r.Opening)
		if err != nil {
			return err
		}
		day := r.At.Unix() / int64((24 * time.Hour).Seconds())
		var b pgx.Batch
		b.Queue(sqlCountCase, uuid(id), int32(r.Category)+1, millis(r.At))
		b.Queue(sqlInsertNote, uuid(id), millis(r.At), int16(r.Category), []byte(r.Text), []byte(r.Contact))
		b.Queue(sqlDropNotes, uuid(id), moderation.MaxNotes)
		b.Queue(sqlDropNetworks, uuid(id), day)
		b.Queue(sqlCountNetwork, uuid(id), day, int64(r.Network), moderation.MaxNetworks).QueryRow(func(row pgx.Row) error {
			return row.Scan(&networks)
		})
		b.Queue(sqlCase, uuid(id)).QueryRow(func(row pgx.Row) (err error) {
			stands, err = scanCase(row)
			return err
		})
		return t.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return moderation.Case{}, 0, fmt.Errorf("report %s: %w", r.Link.Key, err)
	}
	return stands, networks, nil
}
