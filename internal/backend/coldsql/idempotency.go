package coldsql

import (
	"context"
	"fmt"
	"strings"
	"time"

	"curt/internal/idempotency"
	"curt/internal/link"
)

// Idempotency implements idempotency.Store.
type Idempotency struct{ db DB }

var _ idempotency.Store = Idempotency{}

const (
	recordColumns = `request, id, domain, code, minted, found, created`

	sqlRecord = `SELECT ` + recordColumns + ` FROM idempotency WHERE caller = $1 AND name = $2`
	// No row: another record stands.
	sqlClaim = `INSERT INTO idempotency AS old (caller, name, ` + recordColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
	ON CONFLICT (caller, name) DO UPDATE SET request = excluded.request, id = excluded.id, domain = excluded.domain,
		code = excluded.code, minted = excluded.minted, found = excluded.found, created = excluded.created
	WHERE old.created < $10`
	sqlChangeRecord = `UPDATE idempotency SET request = $3, id = $4, domain = $5, code = $6, minted = $7, found = $8, created = $9
	WHERE caller = $1 AND name = $2 AND ((` + recordColumns + `) = ($3, $4, $5, $6, $7, $8, $9)
		OR (` + recordColumns + `) = ($10, $11, $12, $13, $14, $15, $16))`
	sqlDropRecord = `DELETE FROM idempotency WHERE caller = $1 AND name = $2
	AND (` + recordColumns + `) = ($3, $4, $5, $6, $7, $8, $9)`
	sqlForgetRecords = `DELETE FROM idempotency WHERE (caller, name) IN
	(SELECT caller, name FROM idempotency WHERE created < $1 ORDER BY created LIMIT $2)`

	// claims is how often a claim is tried whose record comes and goes.
	claims = 5
)

func nameArgs(n idempotency.Name) []any { return []any{n.Caller, Text(n.Key)} }

// recordArgs are the columns of a record. The codes of a batch, which has no link of its own, lie in
// that of the code; releases before them read nothing but the id of a batch.
func recordArgs(r *idempotency.Record) []any {
	return []any{r.Request[:], r.ID, string(r.Link.Domain), string(r.Link.Code) + r.Codes, r.CodeKind != link.Chosen, r.Found, link.Millis(r.Created)}
}

func findRecord(t Tx, n idempotency.Name) (rec idempotency.Record, found bool, err error) {
	found, err = One(t, sqlRecord, func(r *Row) {
		r.Fill(rec.Request[:], false)
		if rec.ID, rec.Link = r.ID(), r.Key(); strings.HasPrefix(string(rec.Link.Code), ",") {
			rec.Codes, rec.Link.Code = string(rec.Link.Code), ""
		}
		if r.Bool() {
			rec.CodeKind = link.Counted
		}
		rec.Found, rec.Created = r.Bool(), r.Time()
	}, nameArgs(n)...)
	return rec, found, err
}

// Find implements idempotency.Store.
func (s Idempotency) Find(ctx context.Context, n idempotency.Name) (r idempotency.Record, err error) {
	err = s.db.Read(ctx, func(t Tx) error {
		var found bool
		if r, found, err = findRecord(t, n); err == nil && !found {
			return link.ErrNotFound
		}
		return err
	})
	if err != nil {
		return idempotency.Record{}, fmt.Errorf("find an idempotency key: %w", err)
	}
	return r, nil
}

// Claim implements idempotency.Store.
func (s Idempotency) Claim(ctx context.Context, n idempotency.Name, r idempotency.Record, since time.Time) (idempotency.Record, error) {
	if n.Caller == "" || len(n.Caller) > link.MaxName || n.Key == "" || len(n.Key) > idempotency.MaxKey {
		return idempotency.Record{}, fmt.Errorf("claim an idempotency key: its name: %w", link.ErrInvalid)
	}
	args := append(append(nameArgs(n), recordArgs(&r)...), since.UnixMilli())
	var stands idempotency.Record
	err := s.db.Change(ctx, 1, func(t Tx) error {
		for range claims {
			won, err := t.Exec(sqlClaim, args...)
			if err != nil || won > 0 {
				stands = r
				return err
			}
			var found bool
			if stands, found, err = findRecord(t, n); err != nil || found {
				return err
			} // it was released meanwhile
		}
		return fmt.Errorf("its record keeps changing: %w", link.ErrUnavailable)
	})
	if err != nil {
		return idempotency.Record{}, fmt.Errorf("claim an idempotency key: %w", err)
	}
	return stands, nil
}

// Change implements idempotency.Store.
func (s Idempotency) Change(ctx context.Context, n idempotency.Name, from, to idempotency.Record) error {
	args := append(append(nameArgs(n), recordArgs(&to)...), recordArgs(&from)...)
	err := s.db.Change(ctx, 1, func(t Tx) error {
		done, err := t.Exec(sqlChangeRecord, args...)
		if err == nil && done == 0 {
			err = link.ErrConflict
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("change an idempotency key: %w", err)
	}
	return nil
}

// Release implements idempotency.Store.
func (s Idempotency) Release(ctx context.Context, n idempotency.Name, r idempotency.Record) error {
	err := s.db.Change(ctx, 1, func(t Tx) error {
		_, err := t.Exec(sqlDropRecord, append(nameArgs(n), recordArgs(&r)...)...)
		return err
	})
	if err != nil {
		return fmt.Errorf("release an idempotency key: %w", err)
	}
	return nil
}

// Forget implements idempotency.Store.
func (s Idempotency) Forget(ctx context.Context, before time.Time, limit int) (int, error) {
	var n int64
	err := s.db.Change(ctx, limit, func(t Tx) (err error) {
		n, err = t.Exec(sqlForgetRecords, before.UnixMilli(), int64(limit))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("delete expired idempotency keys: %w", err)
	}
	return int(n), nil
}
