package coldreviews

import (
	"context"
	"fmt"

	"curt/internal/backend/coldsql"
	"curt/internal/link"
	"curt/internal/moderation"
)

// Appeals implements moderation.Appeals.
type Appeals struct{ db coldsql.DB }

var _ moderation.Appeals = Appeals{}

const (
	appealColumns = `id, link, domain, code, token, at, made_by, against, reason, erased, answered, answered_by, safety, answer, sequence`

	sqlLinkAppeal   = `SELECT ` + appealColumns + ` FROM appeals WHERE link = $1 ORDER BY id DESC LIMIT 1`
	sqlTokenAppeal  = `SELECT ` + appealColumns + ` FROM appeals WHERE token = $1`
	sqlInsertAppeal = `INSERT INTO appeals (` + appealColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, {false}, 0, '', 0, '', 0)
	ON CONFLICT (link) WHERE answered = 0 DO NOTHING`
	sqlAnswer = `UPDATE appeals SET answered = $2, answered_by = $3, safety = $4, answer = $5, sequence = $6 WHERE id = $1`

	sqlForgetAppeals = `UPDATE appeals SET reason = '', answer = '', erased = {true} WHERE id IN
	(SELECT id FROM appeals WHERE answered <> 0 AND erased = {false} AND answered < $1 LIMIT $2)`
	sqlEraseAppeals = `UPDATE appeals SET reason = '', answer = '', erased = {true} WHERE erased = {false} AND link = $1`
)

// oneAppeal reads the first appeal of a query.
func oneAppeal(t coldsql.Tx, query string, arg any) (a moderation.Appeal, found bool, err error) {
	found, err = coldsql.One(t, query, func(r *coldsql.Row) {
		a.ID, a.Link.ID, a.Link.Key = r.ID(), r.ID(), r.Key()
		r.Fill(a.Token[:], false)
		a.At, a.By, a.Against, a.Reason, a.Erased = r.Time(), r.Text(), uint64(r.Int()), r.Text(), r.Bool()
		a.Answered, a.AnsweredBy, a.Safety, a.Answer, a.Sequence = r.Time(), r.Text(), link.Safety(r.Int()), r.Text(), uint64(r.Int())
	}, arg)
	return a, found, err
}

// answerAppeal answers the open appeal of a link, if there is one. It reports whether that
// was made later, so that the Closing says nothing about it. The open case is locked.
func answerAppeal(t coldsql.Tx, c *moderation.Closing) (later bool, err error) {
	a, found, err := oneAppeal(t, sqlLinkAppeal, c.Link.ID)
	switch {
	case err != nil || !found || !a.IsOpen():
		return false, err
	case a.At.After(c.At):
		return true, nil
	}
	_, err = t.Exec(sqlAnswer, a.ID, link.Millis(c.At), c.By, int64(c.Safety), coldsql.Text(c.Answer), int64(c.Sequence))
	return false, err
}

// Open implements moderation.Appeals. It looks once more when it has the case, which a
// Closing takes first, too: neither misses the other.
func (s Appeals) Open(ctx context.Context, a moderation.Appeal, o moderation.Opening) (moderation.Case, error) {
	var stands moderation.Case
	err := s.db.Write(ctx, 1, func(t coldsql.Tx) error {
		if err := mayAppeal(t, &a); err != nil {
			return err
		}
		id, err := joinCase(t, &o)
		if err != nil {
			return err
		}
		if err := mayAppeal(t, &a); err != nil {
			return err
		}
		made, err := t.Exec(sqlInsertAppeal, a.ID, a.Link.ID, string(a.Link.Key.Domain), string(a.Link.Key.Code),
			a.Token[:], link.Millis(a.At), a.By, int64(a.Against), coldsql.Text(a.Reason))
		switch {
		case err != nil:
			return err
		case made == 0:
			return moderation.ErrAppealed
		}
		stands, _, err = oneCase(t, sqlCase, id)
		return err
	})
	if err != nil {
		return moderation.Case{}, fmt.Errorf("appeal for %s: %w", a.Link.Key, err)
	}
	return stands, nil
}

// mayAppeal says why an appeal cannot be made.
func mayAppeal(t coldsql.Tx, a *moderation.Appeal) error {
	last, found, err := oneAppeal(t, sqlLinkAppeal, a.Link.ID)
	switch {
	case err != nil:
		return err
	case found && last.IsOpen():
		return moderation.ErrAppealed
	case found && a.Against <= last.Sequence:
		return moderation.ErrAnswered
	}
	return nil
}

// Of implements moderation.Appeals.
func (s Appeals) Of(ctx context.Context, l link.ID) (moderation.Appeal, error) {
	return s.find(ctx, sqlLinkAppeal, l)
}

// By implements moderation.Appeals.
func (s Appeals) By(ctx context.Context, token moderation.Hash) (moderation.Appeal, error) {
	return s.find(ctx, sqlTokenAppeal, token[:])
}

func (s Appeals) find(ctx context.Context, query string, arg any) (a moderation.Appeal, err error) {
	err = s.db.Read(ctx, func(t coldsql.Tx) error {
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
