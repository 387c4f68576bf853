package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"curt/internal/link"
	"curt/internal/moderation"
)

// A page is read from where the one before ended, by the index of its order. The filters
// are all in each statement: one that chooses nothing is true for every case. What a filter
// leaves out is read past, because an index for each filter and order would be forty.
const (
	casesWhere = ` FROM cases WHERE workspace <> '' AND open = ?1 AND (?2 = 0 OR sources & ?2 <> 0) AND score >= ?3
	AND (?4 < 0 OR CASE ?4 WHEN 0 THEN phishing WHEN 1 THEN malware WHEN 2 THEN spam WHEN 3 THEN illegal ELSE other END > 0)
	AND (?5 = '' OR host = ?5) AND (?6 = '' OR workspace = ?6) AND (?7 = 0 OR due < ?7)`

	sqlCasesByDue = `SELECT ` + caseColumns + casesWhere + ` AND (appealed_first, due, id) > (?8, ?9, ?10)
	ORDER BY appealed_first, due, id LIMIT ?11`
	sqlCasesByScore = `SELECT ` + caseColumns + casesWhere + ` AND (gravest_first, due, id) > (?8, ?9, ?10)
	ORDER BY gravest_first, due, id LIMIT ?11`
	sqlCasesByReports = `SELECT ` + caseColumns + casesWhere + ` AND (loudest_first, due, id) > (?8, ?9, ?10)
	ORDER BY loudest_first, due, id LIMIT ?11`
	sqlCasesByNewest = `SELECT ` + caseColumns + casesWhere + ` AND (newest_first, id) > (?8, ?10)
	ORDER BY newest_first, id LIMIT ?11`

	sqlCountCases = `SELECT count(*), coalesce(sum(due < ?), 0) FROM cases WHERE open = 1 AND workspace <> ''`

	sqlForgetNotes = `UPDATE case_notes SET text = '', contact = '', erased = 1 WHERE n IN
	(SELECT w.n FROM cases AS c CROSS JOIN case_notes AS w ON w.case_id = c.id
	WHERE c.closed <> 0 AND c.closed < ? AND w.erased = 0 AND (w.text <> '' OR w.contact <> '') LIMIT ?)`
	sqlEraseNotes = `UPDATE case_notes SET text = '', contact = '', erased = 1 WHERE erased = 0 AND (text <> '' OR contact <> '')
	AND case_id IN (SELECT id FROM cases WHERE link = ?)`
)

// nowhere is before every position: no rank is as low.
const nowhere = -int64(1) << 62

// Pending implements moderation.Cases.
func (s Cases) Pending(ctx context.Context, n int) ([]moderation.Case, error) {
	cases, err := s.all(ctx, sqlPendingCases, int64(n))
	if err != nil {
		return nil, fmt.Errorf("list cases without a link: %w", err)
	}
	return cases, nil
}

func (s Cases) all(ctx context.Context, query string, args ...any) (cases []moderation.Case, err error) {
	err = s.links.readMany(ctx, func(t *tx) error {
		return t.each(query, func(row []driver.Value) error {
			c, err := scanCase(row)
			cases = append(cases, c)
			return err
		}, args...)
	})
	return cases, err
}

// Describe implements moderation.Cases.
func (s Cases) Describe(ctx context.Context, id link.ID, f moderation.Facts) error {
	err := s.links.writer.write(ctx, 1, func(t *tx) (err error) {
		if f == (moderation.Facts{}) {
			_, err = t.exec(sqlDropCase, id[:])
		} else {
			_, err = t.exec(sqlDescribeCase, string(f.Workspace), f.Host, id[:])
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
	err = s.links.read(ctx, func(t *tx) error {
		for _, query := range []string{sqlShownCase, sqlClosedCase} {
			var found bool
			if c, found, err = oneCase(t, query, l[:]); err != nil || found {
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
	err = s.links.readMany(ctx, func(t *tx) error {
		return t.each(sqlNotes, func(row []driver.Value) error {
			r := scanner{row: row}
			n := moderation.Note{At: r.time(), Category: moderation.Category(r.int()), Text: r.text(), Contact: r.text(), Erased: r.bool()}
			notes = append(notes, n)
			return r.damage()
		}, id[:])
	})
	if err != nil {
		return nil, fmt.Errorf("read what was reported in case %s: %w", id, err)
	}
	return notes, nil
}

// List implements moderation.Cases.
func (s Cases) List(ctx context.Context, f moderation.CaseFilter, p moderation.CasePage) ([]moderation.Case, moderation.CasePosition, error) {
	query := sqlCasesByDue
	switch f.Order {
	case moderation.ByDue:
	case moderation.ByScore:
		query = sqlCasesByScore
	case moderation.ByReports:
		query = sqlCasesByReports
	case moderation.ByNewest:
		query = sqlCasesByNewest
	}
	category := int64(-1)
	if f.Category != nil {
		category = int64(*f.Category)
	}
	after := p.After
	if after == (moderation.CasePosition{}) {
		after.Rank[0] = nowhere
	}
	cases, err := s.all(ctx, query, bit(!f.Closed), int64(f.Source), int64(f.MinScore), category, f.Host, string(f.Workspace),
		millis(f.DueBefore), after.Rank[0], after.Rank[1], after.ID[:], int64(p.Limit)+1)
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
	err = s.links.readMany(ctx, func(t *tx) error {
		_, err := t.one(sqlCountCases, func(row []driver.Value) error {
			r := scanner{row: row}
			open, overdue = int(r.int()), int(r.int())
			return r.damage()
		}, now.UnixMilli())
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
	err := s.links.writer.write(ctx, n, func(t *tx) error {
		notes, err := t.exec(sqlForgetNotes, before.UnixMilli(), int64(n))
		if err != nil {
			return err
		}
		appeals, err := t.exec(sqlForgetAppeals, before.UnixMilli(), int64(n)-notes)
		done = notes + appeals
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("forget what was reported: %w", err)
	}
	return int(done), nil
}

// Erase implements moderation.Cases.
func (s Cases) Erase(ctx context.Context, l link.ID) (int, error) {
	var done int64
	err := s.links.writer.write(ctx, 1, func(t *tx) error {
		notes, err := t.exec(sqlEraseNotes, l[:])
		if err != nil {
			return err
		}
		appeals, err := t.exec(sqlEraseAppeals, l[:])
		done = notes + appeals
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("erase what was reported of link %s: %w", l, err)
	}
	return int(done), nil
}
