package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"curt/internal/link"
	"curt/internal/moderation"
)

// Cases is the review queue in curt.db. It shares the group commit of Links and ends
// with it.
type Cases struct{ links *Links }

var _ moderation.Cases = Cases{}

// Cases returns the review queue beside the links.
func (s *Links) Cases() Cases { return Cases{s} }

const (
	caseColumns = `id, link, domain, code, workspace, host, sources, score, opened, due,
	reports, phishing, malware, spam, illegal, other, first, last, closed, decided_by, decided, sequence`

	sqlOpenCase   = `SELECT ` + caseColumns + ` FROM cases WHERE link = ? AND closed = 0`
	sqlCase       = `SELECT ` + caseColumns + ` FROM cases WHERE id = ?`
	sqlShownCase  = sqlOpenCase + ` AND workspace <> ''`
	sqlClosedCase = `SELECT ` + caseColumns + ` FROM cases WHERE link = ? AND workspace <> '' ORDER BY closed DESC, id DESC LIMIT 1`
	sqlLaterCase  = `SELECT ` + caseColumns + ` FROM cases INDEXED BY cases_closed_by WHERE link = ? AND sequence > ? AND closed <> 0 ORDER BY sequence LIMIT 1`
	sqlTakenCase  = `SELECT 1 FROM cases WHERE link = ? AND sequence = ? AND closed <> 0`
	sqlInsertCase = `INSERT INTO cases (id, link, domain, code, workspace, host, sources, score, opened, due)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlJoinCase = `UPDATE cases SET workspace = CASE workspace WHEN '' THEN ? ELSE workspace END,
	host = CASE workspace WHEN '' THEN ? ELSE host END, sources = sources | ?, score = max(score, ?) WHERE id = ?`
	sqlCloseCase = `UPDATE cases SET closed = ?, decided_by = ?, decided = ?, sequence = ? WHERE id = ?`
	sqlCountCase = `UPDATE cases SET reports = reports + 1, phishing = phishing + ?, malware = malware + ?, spam = spam + ?,
	illegal = illegal + ?, other = other + ?, first = CASE first WHEN 0 THEN ? ELSE first END, last = ? WHERE id = ?`
	sqlPendingCases = `SELECT ` + caseColumns + ` FROM cases WHERE workspace = '' ORDER BY id LIMIT ?`
	sqlDescribeCase = `UPDATE cases SET workspace = ?, host = ? WHERE id = ? AND workspace = ''`
	sqlDropCase     = `DELETE FROM cases WHERE id = ? AND workspace = ''`

	sqlInsertNote = `INSERT INTO case_notes (case_id, at, category, text, contact, erased) VALUES (?, ?, ?, ?, ?, 0)`
	sqlDropNotes  = `DELETE FROM case_notes WHERE case_id = ?1 AND n NOT IN
	(SELECT n FROM case_notes WHERE case_id = ?1 ORDER BY n DESC LIMIT ?2)`
	sqlNotes = `SELECT at, category, text, contact, erased FROM case_notes WHERE case_id = ? ORDER BY n DESC`

	sqlNetworkDay    = `SELECT max(day) FROM case_networks WHERE case_id = ?`
	sqlNetworks      = `SELECT count(*) FROM case_networks WHERE case_id = ? AND day = ?`
	sqlAddNetwork    = `INSERT INTO case_networks (case_id, day, digest) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`
	sqlDropNetworks  = `DELETE FROM case_networks WHERE case_id = ? AND day < ?`
	sqlPosition      = `SELECT position FROM followers WHERE name = 'cases'`
	sqlMovePosition  = `UPDATE followers SET position = ? WHERE name = 'cases'`
	farAway          = int64(1) << 62 // a day that never comes
	categoriesStored = int(moderation.Other) + 1
)

// scanCase reads caseColumns.
func scanCase(row []driver.Value) (c moderation.Case, err error) {
	s := scanner{row: row}
	copy(c.ID[:], next[[]byte](&s))
	copy(c.Link.ID[:], next[[]byte](&s))
	c.Link.Key = link.Key{Domain: link.Domain(s.text()), Code: link.Code(s.text())}
	c.Facts = moderation.Facts{Workspace: link.WorkspaceID(s.text()), Host: s.text()}
	c.Sources, c.Score = moderation.Sources(s.int()), int(s.int())
	c.Opened, c.Due = s.time(), s.time()
	c.Reports.Count = int(s.int())
	for i := range c.Reports.By {
		c.Reports.By[i] = int(s.int())
	}
	c.Reports.First, c.Reports.Last = s.time(), s.time()
	c.Closed, c.DecidedBy, c.Decided, c.Sequence = s.time(), s.text(), link.Safety(s.int()), uint64(s.int())
	return c, s.damage()
}

// oneCase reads the first case of a query.
func oneCase(t *tx, query string, args ...any) (c moderation.Case, found bool, err error) {
	found, err = t.one(query, func(row []driver.Value) error {
		c, err = scanCase(row)
		return err
	}, args...)
	return c, found, err
}

// joinCase opens a case or joins the one that it belongs to, and returns its id.
func joinCase(t *tx, o *moderation.Opening) (id link.ID, err error) {
	var c moderation.Case
	found := false
	if o.Sequence > 0 {
		c, found, err = oneCase(t, sqlLaterCase, o.Link.ID[:], int64(o.Sequence))
	}
	if err == nil && !found {
		c, found, err = oneCase(t, sqlOpenCase, o.Link.ID[:])
	}
	switch {
	case err != nil:
		return id, err
	case found:
		_, err = t.exec(sqlJoinCase, string(o.Facts.Workspace), o.Facts.Host, int64(o.Source), int64(o.Score), c.ID[:])
		return c.ID, err
	}
	_, err = t.exec(sqlInsertCase, o.ID[:], o.Link.ID[:], string(o.Link.Key.Domain), string(o.Link.Key.Code),
		string(o.Facts.Workspace), o.Facts.Host, int64(o.Source), int64(o.Score), millis(o.At), millis(o.Due))
	return o.ID, err
}

// closeCase is a Closing; found is false when it closed nothing.
func closeCase(t *tx, c *moderation.Closing) (closed moderation.Case, found bool, err error) {
	open, found, err := oneCase(t, sqlOpenCase, c.Link.ID[:])
	if err != nil || !found || open.Opened.After(c.At) {
		return closed, false, err
	}
	if taken, err := t.one(sqlTakenCase, ignore, c.Link.ID[:], int64(c.Sequence)); err != nil || taken {
		return closed, false, err
	}
	if later, err := answerAppeal(t, c); err != nil || later {
		return closed, false, err
	}
	if _, err := t.exec(sqlCloseCase, millis(c.At), c.By, int64(c.Safety), int64(c.Sequence), open.ID[:]); err != nil {
		return closed, false, err
	}
	if _, err := t.exec(sqlDropNetworks, open.ID[:], farAway); err != nil {
		return closed, false, err
	}
	return oneCase(t, sqlCase, open.ID[:])
}

// Position implements moderation.Cases.
func (s Cases) Position(ctx context.Context) (uint64, error) {
	var at int64
	err := s.links.read(ctx, func(t *tx) (err error) {
		at, _, err = t.number(sqlPosition)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the position of the cases: %w", err)
	}
	return uint64(at), nil
}

// Follow implements moderation.Cases.
func (s Cases) Follow(ctx context.Context, after, to uint64, steps []moderation.Step) ([]moderation.Case, error) {
	var closed []moderation.Case // no named result: a write that the caller left may still set it
	err := s.links.writer.write(ctx, 1+len(steps), func(t *tx) error {
		closed = nil // a write may be repeated
		at, _, err := t.number(sqlPosition)
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
		_, err = t.exec(sqlMovePosition, int64(to))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("follow the journal from %d: %w", after, err)
	}
	return closed, nil
}

func followStep(t *tx, s *moderation.Step, closed *[]moderation.Case) error {
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
	err := s.links.writer.write(ctx, 1, func(t *tx) error {
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
	err := s.links.writer.write(ctx, 1, func(t *tx) error {
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
		stands, _, err = oneCase(t, sqlCase, id[:])
		return err
	})
	if err != nil {
		return moderation.Case{}, 0, fmt.Errorf("report %s: %w", r.Link.Key, err)
	}
	return stands, int(networks), nil
}

// noteReport counts a report and keeps what it says.
func noteReport(t *tx, id link.ID, r *moderation.Report) error {
	args := make([]any, categoriesStored, categoriesStored+3)
	for i := range args {
		args[i] = bit(i == int(r.Category))
	}
	if _, err := t.exec(sqlCountCase, append(args, millis(r.At), millis(r.At), id[:])...); err != nil {
		return err
	}
	if _, err := t.exec(sqlInsertNote, id[:], millis(r.At), int64(r.Category), r.Text, r.Contact); err != nil {
		return err
	}
	_, err := t.exec(sqlDropNotes, id[:], int64(moderation.MaxNotes))
	return err
}

// countNetwork counts the networks of the newest day of reports.
func countNetwork(t *tx, id link.ID, r *moderation.Report) (int64, error) {
	day := r.At.Unix() / int64((24 * time.Hour).Seconds())
	if _, err := t.exec(sqlDropNetworks, id[:], day); err != nil {
		return 0, err
	}
	newest, found, err := t.number(sqlNetworkDay, id[:])
	if err != nil {
		return 0, err
	}
	if found && newest > day {
		day, r = newest, &moderation.Report{} // whoever comes late is not counted
	}
	networks, _, err := t.number(sqlNetworks, id[:], day)
	if err != nil || r.Network == 0 || networks >= moderation.MaxNetworks {
		return networks, err
	}
	added, err := t.exec(sqlAddNetwork, id[:], day, int64(r.Network))
	return networks + added, err
}
