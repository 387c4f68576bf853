package coldsql

import (
	"context"
	"fmt"
	"time"

	"curt/internal/link"
	"curt/internal/moderation"
)

// Cases implements moderation.Cases.
//
// Whoever changes the open case of a link holds its row until the commit, and whoever
// follows the journal holds the row of the position first.
type Cases struct{ db DB }

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
func readCase(r *row) (c moderation.Case) {
	c.ID, c.Link.ID, c.Link.Key = r.id(), r.id(), r.key()
	c.Facts = moderation.Facts{Workspace: link.WorkspaceID(r.text()), Host: r.text()}
	c.Sources, c.Score = moderation.Sources(r.int()), int(r.int())
	c.Opened, c.Due = r.time(), r.time()
	c.Reports.Count = int(r.int())
	for i := range c.Reports.By {
		c.Reports.By[i] = int(r.int())
	}
	c.Reports.First, c.Reports.Last = r.time(), r.time()
	c.Closed, c.DecidedBy, c.Decided, c.Sequence = r.time(), r.text(), link.Safety(r.int()), uint64(r.int())
	return c
}

// oneCase reads the first case of a query.
func oneCase(t Tx, query string, args ...any) (c moderation.Case, found bool, err error) {
	found, err = one(t, query, func(r *row) { c = readCase(r) }, args...)
	return c, found, err
}

// joinCase opens a case or joins the one that it belongs to, and returns its id. What an entry
// says that a decision has overtaken belongs to the case that it closed.
func joinCase(t Tx, o *moderation.Opening) (id link.ID, err error) {
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
	_, err = one(t, sqlInsertCase, func(r *row) { id = r.id() }, o.ID, o.Link.ID, string(o.Link.Key.Domain), string(o.Link.Key.Code),
		string(o.Facts.Workspace), o.Facts.Host, int64(o.Source), int64(o.Score), millis(o.At), millis(o.Due))
	return id, err
}

// closeCase is a Closing; found is false when it closed nothing.
func closeCase(t Tx, c *moderation.Closing) (closed moderation.Case, found bool, err error) {
	open, found, err := oneCase(t, sqlOpenCase, c.Link.ID)
	if err != nil || !found || open.Opened.After(c.At) {
		return closed, false, err
	}
	if taken, err := exists(t, sqlTakenCase, c.Link.ID, int64(c.Sequence)); err != nil || taken {
		return closed, false, err
	}
	if later, err := answerAppeal(t, c); err != nil || later {
		return closed, false, err
	}
	if _, err := t.Exec(sqlCloseCase, open.ID, millis(c.At), c.By, int64(c.Safety), int64(c.Sequence)); err != nil {
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
	err := s.db.Read(ctx, func(t Tx) error {
		_, err := one(t, sqlPosition, func(r *row) { at = r.int() })
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
	err := s.db.Write(ctx, 1+len(steps), func(t Tx) error {
		closed = nil
		var at int64
		_, err := one(t, sqlLockPosition, func(r *row) { at = r.int() })
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

func followStep(t Tx, s *moderation.Step, closed *[]moderation.Case) error {
	if s.Open != nil {
		_, err := joinCase(t, s.Open)
		return err
	}
	c, found, err := closeCase(t, s.Close)
	if err == nil && found {
		*closed = append(*closed, c)
	}
	return err
}

// Close implements moderation.Cases.
func (s Cases) Close(ctx context.Context, c moderation.Closing) (moderation.Case, error) {
	var closed moderation.Case
	err := s.db.Write(ctx, 1, func(t Tx) error {
		var found bool
		var err error
		if closed, found, err = closeCase(t, &c); err == nil && !found {
			err = moderation.ErrNoCase
		}
		return err
	})
	if err != nil {
		return moderation.Case{}, fmt.Errorf("close the case of %s: %w", c.Link.Key, err)
	}
	return closed, nil
}

// Report implements moderation.Cases.
func (s Cases) Report(ctx context.Context, r moderation.Report) (moderation.Case, int, error) {
	var stands moderation.Case
	var networks int64
	err := s.db.Write(ctx, 1, func(t Tx) error {
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
func noteReport(t Tx, id link.ID, r *moderation.Report) error {
	args := []any{id}
	for c := range moderation.Other + 1 {
		one := int64(0)
		if c == r.Category {
			one = 1
		}
		args = append(args, one)
	}
	if _, err := t.Exec(sqlCountCase, append(args, millis(r.At))...); err != nil {
		return err
	}
	if _, err := t.Exec(sqlInsertNote, id, millis(r.At), int64(r.Category), Text(r.Text), Text(r.Contact)); err != nil {
		return err
	}
	_, err := t.Exec(sqlDropNotes, id, int64(moderation.MaxNotes))
	return err
}

// countNetwork counts the networks of the newest day of reports. Who comes late, on a day before
// it, is not counted; nor is who is unknown.
func countNetwork(t Tx, id link.ID, r *moderation.Report) (int64, error) {
	day := r.At.Unix() / int64((24 * time.Hour).Seconds())
	if _, err := t.Exec(sqlDropNetworks, id, day); err != nil {
		return 0, err
	}
	newest, networks := day, int64(0)
	if _, err := one(t, sqlNetworks, func(r *row) { newest, networks = r.int(), r.int() }, id); err != nil {
		return 0, err
	}
	if newest > day || r.Network == 0 || networks >= moderation.MaxNetworks {
		return networks, nil
	}
	added, err := t.Exec(sqlAddNetwork, id, day, int64(r.Network))
	return networks + added, err
}
