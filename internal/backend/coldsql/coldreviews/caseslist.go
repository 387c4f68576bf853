package coldreviews

import (
	"context"
	"fmt"
	"time"

	"curt/internal/backend/coldsql"
	"curt/internal/link"
	"curt/internal/moderation"
)

// A page is read from where the one before ended. The filters are all in each statement: one that
// chooses nothing is true for every case. The queue is short: reading past what a filter leaves
// out costs less than an index for each filter and order would.
const (
	casesWhere = ` FROM cases WHERE workspace <> '' AND {open} = $1 AND (CAST($2 AS smallint) = 0 OR sources & $2 <> 0) AND score >= $3
	AND (CAST($4 AS int) < 0 OR CASE $4 WHEN 0 THEN {phishing} WHEN 1 THEN {malware} WHEN 2 THEN {spam} WHEN 3 THEN {illegal} ELSE {other} END > 0)
	AND ($5 = '' OR host = $5) AND ($6 = '' OR workspace = $6) AND (CAST($7 AS bigint) = 0 OR due < $7)`

	byDue     = `{by due}, due`
	byScore   = `{by score}, due`
	byReports = `{by reports}, due`
	byNewest  = `{by newest}`

	sqlPendingCases = `SELECT ` + caseColumns + ` FROM cases WHERE workspace = '' AND id > $1 ORDER BY id LIMIT $2`
	sqlCountCases   = `SELECT count(*), count(*) FILTER (WHERE due < $1) FROM cases WHERE {open} = {true} AND workspace <> ''`
	sqlNotes        = `SELECT at, category, text, contact, erased FROM case_notes WHERE case_id = $1 ORDER BY n DESC`

	sqlForgetNotes = `UPDATE case_notes SET text = '', contact = '', erased = {true} WHERE n IN
	(SELECT w.n FROM cases AS c {join} case_notes AS w ON w.case_id = c.id
	WHERE c.closed <> 0 AND c.closed < $1 AND w.erased = {false} AND (w.text <> '' OR w.contact <> '') LIMIT $2)`
	sqlEraseNotes = `UPDATE case_notes SET text = '', contact = '', erased = {true} WHERE erased = {false} AND (text <> '' OR contact <> '')
	AND case_id IN (SELECT id FROM cases WHERE link = $1)`
)

// casesBy returns the statement of a list by what ranks a case before its id.
func casesBy(rank string) string {
	if rank == byNewest {
		return `SELECT ` + caseColumns + casesWhere + ` AND (` + rank + `, id) > ($8, $9) ORDER BY ` + rank + `, id LIMIT $10`
	}
	return `SELECT ` + caseColumns + casesWhere + ` AND (` + rank + `, id) > ($8, $9, $10) ORDER BY ` + rank + `, id LIMIT $11`
}

// nowhere is before every position: no rank is as low.
const nowhere = -int64(1) << 62

// Pending implements moderation.Cases.
func (s Cases) Pending(ctx context.Context, after link.ID, n int) ([]moderation.Case, error) {
	cases, err := s.all(ctx, sqlPendingCases, after, int64(n))
	if err != nil {
		return nil, fmt.Errorf("list cases without a link: %w", err)
	}
	return cases, nil
}

func (s Cases) all(ctx context.Context, query string, args ...any) (cases []moderation.Case, err error) {
	err = s.db.ReadMany(ctx, func(t coldsql.Tx) error {
		cases = nil
		return coldsql.Each(t, query, func(r *coldsql.Row) { cases = append(cases, readCase(r)) }, args...)
	})
	return cases, err
}

// Describe implements moderation.Cases.
func (s Cases) Describe(ctx context.Context, id link.ID, f moderation.Facts) error {
	err := s.db.Change(ctx, 1, func(t coldsql.Tx) (err error) {
		if f == (moderation.Facts{}) {
			_, err = t.Exec(sqlDropCase, id)
		} else {
			_, err = t.Exec(sqlDescribeCase, id, string(f.Workspace), f.Host)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("describe case %s: %w", id, err)
	}
	return nil
}

// Move implements moderation.Cases.
func (s Cases) Move(ctx context.Context, l link.ID, w link.WorkspaceID) error {
	err := s.db.Change(ctx, 1, func(t coldsql.Tx) error {
		_, err := t.Exec(sqlMoveCase, l, string(w))
		return err
	})
	if err != nil {
		return fmt.Errorf("move the case of link %s: %w", l, err)
	}
	return nil
}

// Case implements moderation.Cases.
func (s Cases) Case(ctx context.Context, l link.ID) (c moderation.Case, err error) {
	err = s.db.Read(ctx, func(t coldsql.Tx) error {
		for _, query := range []string{sqlShownCase, sqlClosedCase} {
			var found bool
			if c, found, err = oneCase(t, query, l); err != nil || found {
				return err
			}
		}
		return moderation.ErrNoCase
	})
	if err != nil {
		return moderation.Case{}, fmt.Errorf("find the case of link %s: %w", l, err)
	}
	return c, nil
}

// Notes implements moderation.Cases.
func (s Cases) Notes(ctx context.Context, id link.ID) (notes []moderation.Note, err error) {
	err = s.db.ReadMany(ctx, func(t coldsql.Tx) error {
		notes = nil
		return coldsql.Each(t, sqlNotes, func(r *coldsql.Row) {
			notes = append(notes, moderation.Note{
				At: r.Time(), Category: moderation.Category(r.Int()), Text: r.Text(), Contact: r.Text(), Erased: r.Bool(),
			})
		}, id)
	})
	if err != nil {
		return nil, fmt.Errorf("read the reports of case %s: %w", id, err)
	}
	return notes, nil
}

// List implements moderation.Cases.
func (s Cases) List(ctx context.Context, f moderation.CaseFilter, p moderation.CasePage) ([]moderation.Case, moderation.CasePosition, error) {
	rank := byDue
	switch f.Order {
	case moderation.ByDue:
	case moderation.ByScore:
		rank = byScore
	case moderation.ByReports:
		rank = byReports
	case moderation.ByNewest:
		rank = byNewest
	}
	category := int64(-1)
	if f.Category != nil {
		category = int64(*f.Category)
	}
	after := p.After
	if after == (moderation.CasePosition{}) {
		after.Rank[0] = nowhere
	}
	args := []any{
		!f.Closed, int64(f.Source), int64(f.MinScore), category, f.Host, string(f.Workspace), link.Millis(f.DueBefore), after.Rank[0],
	}
	if rank != byNewest {
		args = append(args, after.Rank[1])
	}
	cases, err := s.all(ctx, casesBy(rank), append(args, after.ID, int64(p.Limit)+1)...)
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
	err = s.db.ReadMany(ctx, func(t coldsql.Tx) error {
		_, err := coldsql.One(t, sqlCountCases, func(r *coldsql.Row) { open, overdue = int(r.Int()), int(r.Int()) }, now.UnixMilli())
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("count cases: %w", err)
	}
	return open, overdue, nil
}

// Forget implements moderation.Cases.
func (s Cases) Forget(ctx context.Context, before time.Time, n int) (int, error) {
	var done int64
	err := s.db.Write(ctx, n, func(t coldsql.Tx) error {
		notes, err := t.Exec(sqlForgetNotes, before.UnixMilli(), int64(n))
		if err != nil {
			return err
		}
		appeals, err := t.Exec(sqlForgetAppeals, before.UnixMilli(), int64(n)-notes)
		done = notes + appeals
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("delete old reports: %w", err)
	}
	return int(done), nil
}

// Erase implements moderation.Cases.
func (s Cases) Erase(ctx context.Context, l link.ID) (int, error) {
	var done int64
	err := s.db.Write(ctx, 1, func(t coldsql.Tx) error {
		notes, err := t.Exec(sqlEraseNotes, l)
		if err != nil {
			return err
		}
		appeals, err := t.Exec(sqlEraseAppeals, l)
		done = notes + appeals
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("erase the reports of link %s: %w", l, err)
	}
	return int(done), nil
}
