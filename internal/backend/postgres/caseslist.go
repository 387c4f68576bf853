package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"curt/internal/link"
	"curt/internal/moderation"
)

// The filters of a list are all in each of its statements: one that chooses nothing is
// true for every case. The queue is short, so that reading past those which a filter
// leaves out costs less than an index for each would.
const (
	casesWhere = ` FROM cases WHERE workspace <> '' AND (closed = 0) = $1 AND ($2::smallint = 0 OR sources & $2 <> 0) AND score >= $3
	AND ($4::int < 0 OR by_category[$4 + 1] > 0) AND ($5 = '' OR host = $5) AND ($6 = '' OR workspace = $6) AND ($7::bigint = 0 OR due < $7)`

	// What ranks a case before its id; appeals are one of its sources.
	rankByDue     = `-((sources & 4) >> 2)::bigint, due, id`
	rankByScore   = `-score::bigint, due, id`
	rankByReports = `-reports, due, id`
	rankByNewest  = `-opened, 0::bigint, id`

	sqlPendingCases = `SELECT ` + caseColumns + ` FROM cases WHERE workspace = '' ORDER BY id LIMIT $1`
	sqlCountCases   = `SELECT count(*), count(*) FILTER (WHERE due < $1) FROM cases WHERE closed = 0 AND workspace <> ''`
	sqlNotes        = `SELECT at, category, text, contact, erased FROM case_notes WHERE case_id = $1 ORDER BY n DESC`

	sqlForgetNotes = `UPDATE case_notes SET text = '', contact = '', erased = true WHERE n IN
	(SELECT w.n FROM cases AS c JOIN case_notes AS w ON w.case_id = c.id
	WHERE c.closed <> 0 AND c.closed < $1 AND NOT w.erased AND (w.text <> '' OR w.contact <> '') LIMIT $2)`
	sqlEraseNotes = `UPDATE case_notes SET text = '', contact = '', erased = true WHERE NOT erased AND (text <> '' OR contact <> '')
	AND case_id IN (SELECT id FROM cases WHERE link = $1)`
)

// sqlCases returns the statement of an order.
func sqlCases(o moderation.CaseOrder) string {
	rank := rankByDue
	switch o {
	case moderation.ByDue:
	case moderation.ByScore:
		rank = rankByScore
	case moderation.ByReports:
		rank = rankByReports
	case moderation.ByNewest:
		rank = rankByNewest
	}
	return `SELECT ` + caseColumns + casesWhere + ` AND (` + rank + `) > ($8::bigint, $9::bigint, $10) ORDER BY ` + rank + ` LIMIT $11`
}

// beforeAll is before every position: no rank is as low.
const beforeAll = -int64(1) << 62

// Pending implements moderation.Cases.
func (s Cases) Pending(ctx context.Context, n int) ([]moderation.Case, error) {
	cases, err := s.all(ctx, sqlPendingCases, n)
	if err != nil {
		return nil, fmt.Errorf("list cases without a link: %w", err)
	}
	return cases, nil
}

func (s Cases) all(ctx context.Context, query string, args ...any) (cases []moderation.Case, err error) {
	err = s.links.readingMany(ctx, func(ctx context.Context, q querier) error {
		cases = nil
		return each(ctx, q, func(row pgx.Row) error {
			c, err := scanCase(row)
			cases = append(cases, c)
			return err
		}, query, args...)
	})
	return cases, err
}

// Describe implements moderation.Cases.
func (s Cases) Describe(ctx context.Context, id link.ID, f moderation.Facts) error {
	err := s.links.writing(ctx, func(ctx context.Context, q querier) (err error) {
		if f == (moderation.Facts{}) {
			_, err = q.Exec(ctx, sqlDropCase, uuid(id))
		} else {
			_, err = q.Exec(ctx, sqlDescribeCase, uuid(id), string(f.Workspace), f.Host)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("describe case %s: %w", id, err)
	}
	return nil
}

// Case implements moderation.Cases.
func (s Cases) Case(ctx context.Context, l link.ID) (c moderation.Case, err error) {
	err = s.links.reading(ctx, func(ctx context.Context, q querier) error {
		var found bool
		if c, found, err = oneCase(ctx, q, sqlLinkCase, l); err == nil && !found {
			err = moderation.ErrNoCase
		}
		return err
	})
	if err != nil {
		return moderation.Case{}, fmt.Errorf("find the case of link %s: %w", l, err)
	}
	return c, nil
}

// Notes implements moderation.Cases.
func (s Cases) Notes(ctx context.Context, id link.ID) (notes []moderation.Note, err error) {
	err = s.links.readingMany(ctx, func(ctx context.Context, q querier) error {
		notes = nil
		return each(ctx, q, func(row pgx.Row) error {
			var n moderation.Note
			var at int64
			var category int16
			var text, contact []byte
			err := row.Scan(&at, &category, &text, &contact, &n.Erased)
			n.Text, n.Contact = string(text), string(contact)
			n.At, n.Category = timeOf(at), moderation.Category(category)
			notes = append(notes, n)
			return err
		}, sqlNotes, uuid(id))
	})
	if err != nil {
		return nil, fmt.Errorf("read what was reported in case %s: %w", id, err)
	}
	return notes, nil
}

// List implements moderation.Cases.
func (s Cases) List(ctx context.Context, f moderation.CaseFilter, p moderation.CasePage) ([]moderation.Case, moderation.CasePosition, error) {
	category := int32(-1)
	if f.Category != nil {
		category = int32(*f.Category)
	}
	after := p.After
	if after == (moderation.CasePosition{}) {
		after.Rank[0] = beforeAll
	}
	cases, err := s.all(ctx, sqlCases(f.Order), !f.Closed, int16(f.Source), int16(f.MinScore), category, f.Host, string(f.Workspace),
		millis(f.DueBefore), after.Rank[0], after.Rank[1], uuid(after.ID), p.Limit+1)
	switch {
	case err != nil:
		return nil, moderation.CasePosition{}, fmt.Errorf("list cases: %w", err)
	case len(cases) <= p.Limit:
		return cases, moderation.CasePosition{}, nil
	}
	cases = cases[:p.Limit]
	return cases, f.Order.Position(&cases[p.Limit-1]), nil
}

// Count implements moderation.Cases.
func (s Cases) Count(ctx context.Context, now time.Time) (open, overdue int, err error) {
	err = s.links.readingMany(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, sqlCountCases, now.UnixMilli()).Scan(&open, &overdue)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("count cases: %w", err)
	}
	return open, overdue, nil
}

// Forget implements moderation.Cases.
func (s Cases) Forget(ctx context.Context, before time.Time, n int) (done int, err error) {
	err = s.links.transaction(ctx, func(ctx context.Context, t pgx.Tx) error {
		notes, err := changed(ctx, t, sqlForgetNotes, before.UnixMilli(), n)
		if err != nil {
			return err
		}
		appeals, err := changed(ctx, t, sqlForgetAppeals, before.UnixMilli(), int64(n)-notes)
		done = int(notes + appeals)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("forget what was reported: %w", err)
	}
	return done, nil
}

// Erase implements moderation.Cases.
func (s Cases) Erase(ctx context.Context, l link.ID) (done int, err error) {
	err = s.links.transaction(ctx, func(ctx context.Context, t pgx.Tx) error {
		notes, err := changed(ctx, t, sqlEraseNotes, uuid(l))
		if err != nil {
			return err
		}
		appeals, err := changed(ctx, t, sqlEraseAppeals, uuid(l))
		done = int(notes + appeals)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("erase what was reported of link %s: %w", l, err)
	}
	return done, nil
}
