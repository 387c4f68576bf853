package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"curt/internal/link"
	"curt/internal/moderation"
)

// Appeals are kept beside the cases.
type Appeals struct{ links *Links }

var _ moderation.Appeals = Appeals{}

// Appeals returns the appeals beside the links.
func (s *Links) Appeals() Appeals { return Appeals{s} }

const (
	appealColumns = `id, link, domain, code, token, at, made_by, against, reason, erased, answered, answered_by, safety, answer, sequence`

	sqlLinkAppeal   = `SELECT ` + appealColumns + ` FROM appeals WHERE link = $1 ORDER BY id DESC LIMIT 1`
	sqlTokenAppeal  = `SELECT ` + appealColumns + ` FROM appeals WHERE token = $1`
	sqlInsertAppeal = `INSERT INTO appeals (id, link, domain, code, token, at, made_by, against, reason)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (link) WHERE answered = 0 DO NOTHING`
	sqlAnswer = `UPDATE appeals SET answered = $2, answered_by = $3, safety = $4, answer = $5, sequence = $6 WHERE id = $1`

	sqlForgetAppeals = `UPDATE appeals SET reason = '', answer = '', erased = true WHERE id IN
	(SELECT id FROM appeals WHERE answered <> 0 AND NOT erased AND answered < $1 LIMIT $2)`
	sqlEraseAppeals = `UPDATE appeals SET reason = '', answer = '', erased = true WHERE NOT erased AND link = $1`
)

// oneAppeal reads the first appeal of a query.
func oneAppeal(ctx context.Context, q querier, query string, arg any) (a moderation.Appeal, found bool, err error) {
	var id, linkID pgtype.UUID
	var token, reason, answer []byte
	var at, against, answered, sequence int64
	var safety int16
	found, err = one(ctx, q, func(row pgx.Row) error {
		return row.Scan(&id, &linkID, (*string)(&a.Link.Key.Domain), (*string)(&a.Link.Key.Code), &token, &at, &a.By, &against,
			&reason, &a.Erased, &answered, &a.AnsweredBy, &safety, &answer, &sequence)
	}, query, arg)
	a.ID, a.Link.ID, a.At, a.Answered = id.Bytes, linkID.Bytes, timeOf(at), timeOf(answered)
	copy(a.Token[:], token)
	a.Reason, a.Answer = string(reason), string(answer)
	a.Against, a.Safety, a.Sequence = uint64(against), link.Safety(safety), uint64(sequence)
	return a, found, err
}

// answerAppeal answers the open appeal of a link, if there is one. It reports whether that
// was made later, so that the Closing says nothing about it. The open case is locked.
func answerAppeal(ctx context.Context, t pgx.Tx, c *moderation.Closing) (later bool, err error) {
	a, found, err := oneAppeal(ctx, t, sqlLinkAppeal, uuid(c.Link.ID))
	switch {
	case err != nil || !found || !a.IsOpen():
		return false, err
	case a.At.After(c.At):
		return true, nil
	}
	_, err = t.Exec(ctx, sqlAnswer, uuid(a.ID), millis(c.At), c.By, int16(c.Safety), []byte(c.Answer), int64(c.Sequence))
	return false, err
}

// Open implements moderation.Appeals. It looks once more when it has the case, which a
// Closing takes first, too: neither misses the other.
func (s Appeals) Open(ctx context.Context, a moderation.Appeal, o moderation.Opening) (stands moderation.Case, err error) {
	err = s.links.transaction(ctx, func(ctx context.Context, t pgx.Tx) error {
		if err := mayAppeal(ctx, t, &a); err != nil {
			return err
		}
		id, err := joinCase(ctx, t, &o)
		if err != nil {
			return err
		}
		if err := mayAppeal(ctx, t, &a); err != nil {
			return err
		}
		made, err := changed(ctx, t, sqlInsertAppeal, uuid(a.ID), uuid(a.Link.ID), string(a.Link.Key.Domain), string(a.Link.Key.Code),
			a.Token[:], millis(a.At), a.By, int64(a.Against), []byte(a.Reason))
		switch {
		case err != nil:
			return err
		case made == 0:
			return moderation.ErrAppealed
		}
		stands, _, err = oneCase(ctx, t, sqlCase, id)
		return err
	})
	if err != nil {
		return moderation.Case{}, fmt.Errorf("appeal for %s: %w", a.Link.Key, err)
	}
	return stands, nil
}

// mayAppeal says why an appeal cannot be made.
func mayAppeal(ctx context.Context, t pgx.Tx, a *moderation.Appeal) error {
	last, found, err := oneAppeal(ctx, t, sqlLinkAppeal, uuid(a.Link.ID))
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
	return s.find(ctx, sqlLinkAppeal, uuid(l))
}

// By implements moderation.Appeals.
func (s Appeals) By(ctx context.Context, token moderation.Hash) (moderation.Appeal, error) {
	return s.find(ctx, sqlTokenAppeal, token[:])
}

func (s Appeals) find(ctx context.Context, query string, arg any) (a moderation.Appeal, err error) {
	err = s.links.reading(ctx, func(ctx context.Context, q querier) error {
		var found bool
		if a, found, err = oneAppeal(ctx, q, query, arg); err == nil && !found {
			err = moderation.ErrNoAppeal
		}
		return err
	})
	if err != nil {
		return moderation.Appeal{}, fmt.Errorf("find an appeal: %w", err)
	}
	return a, nil
}
