package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"curt/internal/link"
	"curt/internal/moderation"
)

// Appeals are the appeals in curt.db, beside the cases.
type Appeals struct{ links *Links }

var _ moderation.Appeals = Appeals{}

// Appeals returns the appeals beside the links.
func (s *Links) Appeals() Appeals { return Appeals{s} }

const (
	appealColumns = `id, link, domain, code, token, at, made_by, against, reason, erased, answered, answered_by, safety, answer, sequence`

	sqlLinkAppeal   = `SELECT ` + appealColumns + ` FROM appeals WHERE link = ? ORDER BY id DESC LIMIT 1`
	sqlTokenAppeal  = `SELECT ` + appealColumns + ` FROM appeals WHERE token = ?`
	sqlInsertAppeal = `INSERT INTO appeals (` + appealColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, '', 0, '', 0)`
	sqlAnswer       = `UPDATE appeals SET answered = ?, answered_by = ?, safety = ?, answer = ?, sequence = ? WHERE id = ?`

	sqlForgetAppeals = `UPDATE appeals SET reason = '', answer = '', erased = 1 WHERE id IN
	(SELECT id FROM appeals WHERE answered <> 0 AND erased = 0 AND answered < ? LIMIT ?)`
	sqlEraseAppeals = `UPDATE appeals SET reason = '', answer = '', erased = 1 WHERE erased = 0 AND link = ?`
)

// oneAppeal reads the first appeal of a query.
func oneAppeal(t *tx, query string, arg any) (a moderation.Appeal, found bool, err error) {
	found, err = t.one(query, func(row []driver.Value) error {
		s := scanner{row: row}
		copy(a.ID[:], next[[]byte](&s))
		copy(a.Link.ID[:], next[[]byte](&s))
		a.Link.Key = link.Key{Domain: link.Domain(s.text()), Code: link.Code(s.text())}
		copy(a.Token[:], next[[]byte](&s))
		a.At, a.By, a.Against, a.Reason, a.Erased = s.time(), s.text(), uint64(s.int()), s.text(), s.bool()
		a.Answered, a.AnsweredBy, a.Safety, a.Answer, a.Sequence = s.time(), s.text(), link.Safety(s.int()), s.text(), uint64(s.int())
		return s.damage()
	}, arg)
	return a, found, err
}

// answerAppeal answers the open appeal of a link, if there is one. It reports whether
// that was made later, so that the Closing says nothing about it.
func answerAppeal(t *tx, c *moderation.Closing) (later bool, err error) {
	a, found, err := oneAppeal(t, sqlLinkAppeal, c.Link.ID[:])
	switch {
	case err != nil || !found || !a.IsOpen():
		return false, err
	case a.At.After(c.At):
		return true, nil
	}
	_, err = t.exec(sqlAnswer, millis(c.At), c.By, int64(c.Safety), c.Answer, int64(c.Sequence), a.ID[:])
	return false, err
}

// Open implements moderation.Appeals.
func (s Appeals) Open(ctx context.Context, a moderation.Appeal, o moderation.Opening) (moderation.Case, error) {
	var stands moderation.Case // no named result: a write that the caller left may still set it
	err := s.links.writer.write(ctx, 1, func(t *tx) error {
		last, found, err := oneAppeal(t, sqlLinkAppeal, a.Link.ID[:])
		switch {
		case err != nil:
			return err
		case found && last.IsOpen():
			return moderation.ErrAppealed
		case found && a.Against <= last.Sequence:
			return moderation.ErrAnswered
		}
		if _, err := t.exec(sqlInsertAppeal, a.ID[:], a.Link.ID[:], string(a.Link.Key.Domain), string(a.Link.Key.Code),
			a.Token[:], millis(a.At), a.By, int64(a.Against), a.Reason); err != nil {
			return err
		}
		id, err := joinCase(t, &o)
		if err != nil {
			return err
		}
		stands, _, err = oneCase(t, sqlCase, id[:])
		return err
	})
	if err != nil {
		return moderation.Case{}, fmt.Errorf("appeal for %s: %w", a.Link.Key, err)
	}
	return stands, nil
}

// Of implements moderation.Appeals.
func (s Appeals) Of(ctx context.Context, l link.ID) (moderation.Appeal, error) {
	return s.find(ctx, sqlLinkAppeal, l[:])
}

// By implements moderation.Appeals.
func (s Appeals) By(ctx context.Context, token moderation.Hash) (moderation.Appeal, error) {
	return s.find(ctx, sqlTokenAppeal, token[:])
}

func (s Appeals) find(ctx context.Context, query string, arg []byte) (a moderation.Appeal, err error) {
	err = s.links.read(ctx, func(t *tx) error {
		var found bool
		if a, found, err = oneAppeal(t, query, arg); err == nil && !found {
			err = moderation.ErrNoAppeal
		}
		return err
	})
	if err != nil {
		return moderation.Appeal{}, fmt.Errorf("find an appeal: %w", err)
	}
	return a, nil
}
