package coldreviews

import (
	"context"
	"fmt"
	"time"

	"curt/internal/backend/coldsql"
	"curt/internal/link"
	"curt/internal/moderation"
)

// Cases implements moderation.Cases.
//
// Whoever changes the open case of a link holds its row until the commit, and whoever
// follows the journal holds the row of the position first.
type Cases struct{ db coldsql.DB }

var _ moderation.Cases = Cases{}

const (
	caseColumns = `id, link, domain, code, workspace, host, sources, score, opened, due,
	reports, {phishing}, {malware}, {spam}, {illegal}, {other}, first, last, closed, decided_by, decided, sequence`

	openCase      = `SELECT ` + caseColumns + ` FROM cases WHERE link = $1 AND closed = 0`
	sqlOpenCase   = openCase + ` {lock}`
	sqlShownCase  = openCase + ` AND workspace <> ''`
	sqlCase       = `SELECT ` + caseColumns + ` FROM cases WHERE id = $1`
	sqlClosedCase = `SELECT ` + caseColumns + ` FROM cases WHERE link = $1 AND workspace <> '' ORDER BY closed DESC, id DESC LIMIT 1`
	sqlLaterCase  = `SELECT ` + caseColumns + ` FROM cases {by cases_closed_by} WHERE link = $1 AND sequence > $2 AND closed <> 0 ORDER BY sequence LIMIT 1`
	sqlTakenCase  = `SELECT 1 FROM cases WHERE link = $1 AND sequence = $2 AND closed <> 0`
	sqlInsertCase = `INSERT INTO cases AS old (id, link, domain, code, workspace, host, sources, score, opened, due)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
	ON CONFLICT (link) WHERE closed = 0 DO UPDATE SET
		workspace = CASE old.workspace WHEN '' THEN excluded.workspace ELSE old.workspace END,
		host = CASE old.workspace WHEN '' THEN excluded.host ELSE old.host END,
		sources = old.sources | excluded.sources, score = {greatest}(old.score, excluded.score)
	RETURNING id`
	sqlJoinCase = `UPDATE cases SET workspace = CASE workspace WHEN '' THEN $2 ELSE workspace END,
	host = CASE workspace WHEN '' THEN $3 ELSE host END, sources = sources | $4, score = {greatest}(score, $5) WHERE id = $1`
	sqlCloseCase = `UPDATE cases SET closed = $2, decided_by = $3, decided = $4, sequence = $5 WHERE id = $1`
	sqlCountCase = `UPDATE cases SET reports = reports + 1, {phishing} = {phishing} + $2, {malware} = {malware} + $3, {spam} = {spam} + $4,
	{illegal} = {illegal} + $5, {other} = {other} + $6, first = CASE first WHEN 0 THEN $7 ELSE first END, last = $7 WHERE id = $1`
	sqlDescribeCase = `UPDATE cases SET workspace = $2, host = $3 WHERE id = $1 AND workspace = ''`
	sqlMoveCase     = `UPDATE cases SET workspace = $2 WHERE link = $1 AND closed = 0 AND workspace <> ''`
	sqlDropCase     = `DELETE FROM cases WHERE id = $1 AND workspace = ''`

	sqlInsertNote = `INSERT INTO case_notes (case_id, at, category, text, contact, erased) VALUES ($1, $2, $3, $4, $5, {false})`
	sqlDropNotes  = `DELETE FROM case_notes WHERE case_id = $1 AND n <=
	(SELECT n FROM case_notes WHERE case_id = $1 ORDER BY n DESC LIMIT 1 OFFSET $2)`

	// The newest day of reports.
	sqlNetworks     = `SELECT day, count(*) FROM case_networks WHERE case_id = $1 GROUP BY day ORDER BY day DESC LIMIT 1`
	sqlAddNetwork   = `INSERT INTO case_networks (case_id, day, digest) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	sqlDropNetworks = `DELETE FROM case_networks WHERE case_id = $1 AND day < $2`

	sqlPosition     = `SELECT position FROM followers WHERE name = 'cases'`
	sqlLockPosition = sqlPosition + ` {lock}`
	sqlMovePosition = `UPDATE followers SET position = $1 WHERE name = 'cases'`

	farAway = int64(1) << 62 // a day that never comes
)

// readCase reads caseColumns.
func readCase(r *coldsql.Row) (c moderation.Case) {
	c.ID, c.Link.ID, c.Link.Key = r.ID(), r.ID(), r.Key()
	c.Facts = moderation.Facts{Workspace: link.WorkspaceID(r.Text()), Host: r.Text()}
	c.Sources, c.Score = moderation.Sources(r.Int()), int(r.Int())
	c.Opened, c.Due = r.Time(), r.Time()
	c.Reports.Count = int(r.Int())
	for i := range c.Reports.By {
		c.Reports.By[i] = int(r.Int())
	}
	c.Reports.First, c.Reports.Last = r.Time(), r.Time()
	c.Closed, c.DecidedBy, c.Decided, c.Sequence = r.Time(), r.Text(), link.Safety(r.Int()), uint64(r.Int())
	return c
}

// oneCase reads the first case of a query.
func oneCase(t coldsql.Tx, query string, args ...any) (c moderation.Case, found bool, err error) {
	found, err = coldsql.One(t, query, func(r *coldsql.Row) { c = readCase(r) }, args...)
	return c, found, err
}

// joinCase opens a case or joins the one that it belongs to, and returns its id. What an entry
// says that a decision has overtaken belongs to the case that it closed.
func joinCase(t coldsql.Tx, o *moderation.Opening) (id link.ID, err error) {
	if o.Sequence > 0 {
		// Whoever closes the open case now is waited for, and then seen.
		if _, _, err := oneCase(t, sqlOpenCase, o.Link.ID); err != nil {
			return id, err
		}
		later, found, err := oneCase(t, sqlLaterCase, o.Link.ID, int64(o.Sequence))
		if err == nil && found {
			_, err = t.Exec(sqlJoinCase, later.ID, string(o.Facts.Workspace), o.Facts.Host, int64(o.Source), int64(o.Score))
		}
		if err != nil || found {
			return later.ID, err
		}
	}
	_, err = coldsql.One(t, sqlInsertCase, func(r *coldsql.Row) { id = r.ID() }, o.ID, o.Link.ID, string(o.Link.Key.Domain), string(o.Link.Key.Code),
		string(o.Facts.Workspace), o.Facts.Host, int64(o.Source), int64(o.Score), link.Millis(o.At), link.Millis(o.Due))
	return id, err
}

// closeCase is a Closing; found is false when it closed nothing.
func closeCase(t coldsql.Tx, c *moderation.Closing) (closed moderation.Case, found bool, err error) {
	open, found, err := oneCase(t, sqlOpenCase, c.Link.ID)
	if err != nil || !found || open.Opened.After(c.At) {
		return closed, false, err
	}
	if taken, err := coldsql.Exists(t, sqlTakenCase, c.Link.ID, int64(c.Sequence)); err != nil || taken {
		return closed, false, err
	}
	if later, err := answerAppeal(t, c); err != nil || later {
		return closed, false, err
	}
	if _, err := t.Exec(sqlCloseCase, open.ID, link.Millis(c.At), c.By, int64(c.Safety), int64(c.Sequence)); err != nil {
		return closed, false, err
	}
	if _, err := t.Exec(sqlDropNetworks, open.ID, farAway); err != nil {
		return closed, false, err
	}
	return oneCase(t, sqlCase, open.ID)
}

// Position implements moderation.Cases.
func (s Cases) Position(ctx context.Context) (uint64, error) {
	var at int64
	err := s.db.Read(ctx, func(t coldsql.Tx) error {
		_, err := coldsql.One(t, sqlPosition, func(r *coldsql.Row) { at = r.Int() })
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the position of the cases: %w", err)
	}
	return uint64(at), nil
}

// Follow implements moderation.Cases.
func (s Cases) Follow(ctx context.Context, after, to uint64, steps []moderation.Step) ([]moderation.Case, error) {
	var closed []moderation.Case
	err := s.db.Write(ctx, 1+len(steps), func(t coldsql.Tx) error {
		closed = nil
		var at int64
		_, err := coldsql.One(t, sqlLockPosition, func(r *coldsql.Row) { at = r.Int() })
		switch {
		case err != nil:
			return err
		case uint64(at) != after:
			return link.ErrConflict
		}
		for i := range steps {
			if err := followStep(t, &steps[i], &closed); err != nil {
				return err
			}
		}
		_, err = t.Exec(sqlMovePosition, int64(to))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("follow the journal from %d: %w", after, err)
	}
	return closed, nil
}

func followStep(t coldsql.Tx, s *moderation.Step, closed *[]moderation.Case) error {
	if s.Open != nil {
		_, err := joinCase(t, s.Open)
		return err
	}
	return closeAll(t, s.Close, closed)
}

// closeAll closes the case of a Closing, and those of the same destination in other workspaces.
func closeAll(t coldsql.Tx, c *moderation.Closing, closed *[]moderation.Case) error {
	all, err := closings(t, c)
	for i := 0; i < len(all) && err == nil; i++ {
		if err = decideDestination(t, &all[i]); err != nil {
			return err
		}
		var one moderation.Case
		var found bool
		if one, found, err = closeCase(t, &all[i]); err == nil && found {
			*closed = append(*closed, one)
		}
	}
	return err
}

// Close implements moderation.Cases.
func (s Cases) Close(ctx context.Context, c moderation.Closing) (moderation.Case, error) {
	var closed []moderation.Case
	err := s.db.Write(ctx, 1, func(t coldsql.Tx) error {
		closed = nil
		return closeAll(t, &c, &closed)
	})
	if err == nil && (len(closed) == 0 || closed[0].Link.ID != c.Link.ID) {
		err = moderation.ErrNoCase
	}
	if err != nil {
		return moderation.Case{}, fmt.Errorf("close the case of %s: %w", c.Link.Key, err)
	}
	return closed[0], nil
}

// Report implements moderation.Cases.
func (s Cases) Report(ctx context.Context, r moderation.Report) (moderation.Case, int, error) {
	var stands moderation.Case
	var networks int64
	err := s.db.Write(ctx, 1, func(t coldsql.Tx) error {
		id, err := joinCase(t, &r.Opening)
		if err != nil {
			return err
		}
		if err := noteReport(t, id, &r); err != nil {
			return err
		}
		if networks, err = countNetwork(t, id, &r); err != nil {
			return err
		}
		stands, _, err = oneCase(t, sqlCase, id)
		return err
	})
	if err != nil {
		return moderation.Case{}, 0, fmt.Errorf("report %s: %w", r.Link.Key, err)
	}
	return stands, int(networks), nil
}

// noteReport counts a report and keeps what it says.
func noteReport(t coldsql.Tx, id link.ID, r *moderation.Report) error {
	args := []any{id}
	for c := range moderation.Other + 1 {
		one := int64(0)
		if c == r.Category {
			one = 1
		}
		args = append(args, one)
	}
	if _, err := t.Exec(sqlCountCase, append(args, link.Millis(r.At))...); err != nil {
		return err
	}
	if _, err := t.Exec(sqlInsertNote, id, link.Millis(r.At), int64(r.Category), coldsql.Text(r.Text), coldsql.Text(r.Contact)); err != nil {
		return err
	}
	_, err := t.Exec(sqlDropNotes, id, int64(moderation.MaxNotes))
	return err
}

// countNetwork counts the networks of the newest day of reports. Who comes late, on a day before
// it, is not counted; nor is who is unknown.
func countNetwork(t coldsql.Tx, id link.ID, r *moderation.Report) (int64, error) {
	day := r.At.Unix() / int64((24 * time.Hour).Seconds())
	if _, err := t.Exec(sqlDropNetworks, id, day); err != nil {
		return 0, err
	}
	newest, networks := day, int64(0)
	if _, err := coldsql.One(t, sqlNetworks, func(r *coldsql.Row) { newest, networks = r.Int(), r.Int() }, id); err != nil {
		return 0, err
	}
	if newest > day || r.Network == 0 || networks >= moderation.MaxNetworks {
		return networks, nil
	}
	added, err := t.Exec(sqlAddNetwork, id, day, int64(r.Network))
	return networks + added, err
}
