package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"curt/internal/idempotency"
	"curt/internal/link"
)

// Idempotency is the table of idempotency keys in curt.db. It shares the group commit
// of Links and ends with it.
type Idempotency struct{ links *Links }

var _ idempotency.Store = Idempotency{}

// Idempotency returns the store of idempotency keys beside the links.
func (s *Links) Idempotency() Idempotency { return Idempotency{s} }

// scanRecord reads recordColumns.
func scanRecord(row []driver.Value) (r idempotency.Record, err error) {
	s := scanner{row: row}
	request, id := next[[]byte](&s), next[[]byte](&s)
	r.Link = link.Key{Domain: link.Domain(s.text()), Code: link.Code(s.text())}
	r.Minted, r.Found, r.Created = s.bool(), s.bool(), s.time()
	s.bad = s.bad || len(request) != len(r.Request) || len(id) != len(r.ID)
	copy(r.Request[:], request)
	copy(r.ID[:], id)
	return r, s.damage()
}

func recordArgs(n idempotency.Name, r *idempotency.Record) []any {
	return []any{
		n.Caller, n.Key, r.Request[:], r.ID[:], string(r.Link.Domain), string(r.Link.Code),
		bit(r.Minted), bit(r.Found), millis(r.Created),
	}
}

func findRecord(t *tx, n idempotency.Name) (r idempotency.Record, found bool, err error) {
	found, err = t.one(sqlRecord, func(row []driver.Value) error {
		r, err = scanRecord(row)
		return err
	}, n.Caller, n.Key)
	return r, found, err
}

// Find implements idempotency.Store.
func (s Idempotency) Find(ctx context.Context, n idempotency.Name) (r idempotency.Record, err error) {
	err = s.links.read(ctx, func(t *tx) error {
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
	var stands idempotency.Record // no named result: a write that the caller left may still set it
	err := s.links.writer.write(ctx, 1, func(t *tx) error {
		old, found, err := findRecord(t, n)
		if err != nil || found && !old.Created.Before(since) {
			stands = old
			return err
		}
		stands = r
		_, err = t.exec(sqlPutRecord, recordArgs(n, &r)...)
		return err
	})
	if err != nil {
		return idempotency.Record{}, fmt.Errorf("claim an idempotency key: %w", err)
	}
	return stands, nil
}

// Change implements idempotency.Store.
func (s Idempotency) Change(ctx context.Context, n idempotency.Name, from, to idempotency.Record) error {
	err := s.links.writer.write(ctx, 1, func(t *tx) error {
		old, found, err := findRecord(t, n)
		switch {
		case err != nil:
			return err
		case !found || old != from && old != to:
			return link.ErrConflict
		}
		_, err = t.exec(sqlPutRecord, recordArgs(n, &to)...)
		return err
	})
	if err != nil {
		return fmt.Errorf("change an idempotency key: %w", err)
	}
	return nil
}

// Release implements idempotency.Store.
func (s Idempotency) Release(ctx context.Context, n idempotency.Name, r idempotency.Record) error {
	err := s.links.writer.write(ctx, 1, func(t *tx) error {
		old, found, err := findRecord(t, n)
		if err == nil && found && old == r {
			_, err = t.exec(sqlDropRecord, n.Caller, n.Key)
		}
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
	err := s.links.writer.write(ctx, limit, func(t *tx) (err error) {
		n, err = t.exec(sqlForgetRecords, before.UnixMilli(), int64(limit))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("forget idempotency keys: %w", err)
	}
	return int(n), nil
}
