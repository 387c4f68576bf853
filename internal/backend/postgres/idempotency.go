package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"curt/internal/idempotency"
	"curt/internal/link"
)

// Idempotency is the table of idempotency keys beside the links. It shares their
// connections and ends with them.
type Idempotency struct{ links *Links }

var _ idempotency.Store = Idempotency{}

// Idempotency returns the store of idempotency keys beside the links.
func (s *Links) Idempotency() Idempotency { return Idempotency{s} }

const (
	recordColumns = `request, id, domain, code, minted, found, created`

	sqlRecord = `SELECT ` + recordColumns + ` FROM idempotency WHERE caller = $1 AND name = $2`
	// No row: another record stands.
	sqlClaim = `INSERT INTO idempotency AS old (caller, name, ` + recordColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
	ON CONFLICT (caller, name) DO UPDATE SET request = excluded.request, id = excluded.id, domain = excluded.domain,
		code = excluded.code, minted = excluded.minted, found = excluded.found, created = excluded.created
	WHERE old.created < $10`
	sqlChangeRecord = `UPDATE idempotency SET request = $3, id = $4, domain = $5, code = $6, minted = $7, found = $8, created = $9
	WHERE caller = $1 AND name = $2 AND (` + recordColumns + `) IN (($3, $4, $5, $6, $7, $8, $9), ($10, $11, $12, $13, $14, $15, $16))`
	sqlDropRecord = `DELETE FROM idempotency WHERE caller = $1 AND name = $2
	AND (` + recordColumns + `) = ($3, $4, $5, $6, $7, $8, $9)`
	sqlForgetRecords = `DELETE FROM idempotency WHERE (caller, name) IN
	(SELECT caller, name FROM idempotency WHERE created < $1 ORDER BY created LIMIT $2)`
)

func nameArgs(n idempotency.Name) []any { return []any{n.Caller, []byte(n.Key)} }

func recordArgs(r *idempotency.Record) []any {
	return []any{r.Request[:], uuid(r.ID), string(r.Link.Domain), string(r.Link.Code), r.Minted, r.Found, millis(r.Created)}
}

func findRecord(ctx context.Context, q querier, n idempotency.Name) (r idempotency.Record, found bool, err error) {
	var request []byte
	var id pgtype.UUID
	var created int64
	found, err = one(ctx, q, func(row pgx.Row) error {
		return row.Scan(&request, &id, (*string)(&r.Link.Domain), (*string)(&r.Link.Code), &r.Minted, &r.Found, &created)
	}, sqlRecord, nameArgs(n)...)
	copy(r.Request[:], request)
	r.ID, r.Created = id.Bytes, timeOf(created)
	return r, found, err
}

// Find implements idempotency.Store.
func (s Idempotency) Find(ctx context.Context, n idempotency.Name) (r idempotency.Record, err error) {
	err = s.links.reading(ctx, func(ctx context.Context, q querier) error {
		var found bool
		if r, found, err = findRecord(ctx, q, n); err == nil && !found {
			err = link.ErrNotFound
		}
		return err
	})
	if err != nil {
		return idempotency.Record{}, fmt.Errorf("find an idempotency key: %w", err)
	}
	return r, nil
}

// Claim implements idempotency.Store.
func (s Idempotency) Claim(ctx context.Context, n idempotency.Name, r idempotency.Record, since time.Time) (stands idempotency.Record, err error) {
	if n.Caller == "" || len(n.Caller) > link.MaxName || n.Key == "" || len(n.Key) > idempotency.MaxKey {
		return stands, fmt.Errorf("claim an idempotency key: its name: %w", link.ErrInvalid)
	}
	args := append(append(nameArgs(n), recordArgs(&r)...), since.UnixMilli())
	err = s.links.writing(ctx, func(ctx context.Context, q querier) error {
		for range repeats {
			won, err := changed(ctx, q, sqlClaim, args...)
			if err != nil || won > 0 {
				stands = r
				return err
			}
			var found bool
			if stands, found, err = findRecord(ctx, q, n); err != nil || found {
				return err
			} // it was released meanwhile
		}
		return fmt.Errorf("its record comes and goes: %w", link.ErrUnavailable)
	})
	if err != nil {
		return idempotency.Record{}, fmt.Errorf("claim an idempotency key: %w", err)
	}
	return stands, nil
}

// Change implements idempotency.Store.
func (s Idempotency) Change(ctx context.Context, n idempotency.Name, from, to idempotency.Record) error {
	args := append(append(nameArgs(n), recordArgs(&to)...), recordArgs(&from)...)
	err := s.links.writing(ctx, func(ctx context.Context, q querier) error {
		done, err := changed(ctx, q, sqlChangeRecord, args...)
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
	err := s.links.writing(ctx, func(ctx context.Context, q querier) error {
		_, err := changed(ctx, q, sqlDropRecord, append(nameArgs(n), recordArgs(&r)...)...)
		return err
	})
	if err != nil {
		return fmt.Errorf("release an idempotency key: %w", err)
	}
	return nil
}

// Forget implements idempotency.Store.
func (s Idempotency) Forget(ctx context.Context, before time.Time, limit int) (int, error) {
	var gone int64
	err := s.links.writing(ctx, func(ctx context.Context, q querier) (err error) {
		gone, err = changed(ctx, q, sqlForgetRecords, before.UnixMilli(), limit)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("forget idempotency keys: %w", err)
	}
	return int(gone), nil
}
