package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"curt/internal/link"
)

// place returns the row where a code lies if its strategy issued it.
func (s *Links) place(c link.Code) (n int64, ok bool) { return s.codes.Place(c) }

// find runs a query for one row at the row of a key: where the permutation puts it,
// or where aliases says. scan gets every row that may be it and says whether it is,
// because a place holds one link while two domains may use one code.
func (s *Links) find(t *tx, k link.Key, query string, scan func(row []driver.Value) (bool, error)) (found bool, err error) {
	var damaged error // the row at the place of the code, which may be another domain's
	at := func(n int64) error {
		_, err := t.one(query, func(row []driver.Value) error {
			found, err = scan(row)
			return err
		}, n)
		return err
	}
	if n, ok := s.place(k.Code); ok {
		if damaged = at(n); damaged != nil && !isDamaged(damaged) || found {
			return found, damaged
		}
	}
	n, ok, _, err := aliasRow(t, k)
	switch {
	case err != nil:
		return false, err
	case !ok:
		return false, damaged
	}
	if err := at(n); err != nil || found {
		return found, err
	}
	astray := n
	if n, ok, err = t.number(sqlAliasRow, string(k.Domain), string(k.Code)); err == nil && ok {
		err = at(n)
	}
	if err != nil {
		return false, err
	}
	if n = astray; !found {
		return false, &link.DamagedError{Key: k, Err: fmt.Errorf("its alias leads to row %d, which is another link's: %w", n, ErrCorrupt)}
	}
	return true, nil
}

// isDamaged reports whether an error means one link alone.
func isDamaged(err error) bool {
	_, is := errors.AsType[*link.DamagedError](err)
	return is
}

// byKey returns the row of a key.
func (s *Links) byKey(t *tx, k link.Key) (n int64, l link.Link, found bool, err error) {
	found, err = s.find(t, k, sqlLinkAt, func(row []driver.Value) (bool, error) {
		var err error
		n, l, err = scanLink(row)
		return l.Key == k, err
	})
	return n, l, found, err
}

// twice is for an f that may be called again: what the disk failed to read once it may read the
// next time, and a visitor need not know.
func twice(f func(t *tx) error) func(t *tx) error {
	return func(t *tx) error {
		err := f(t)
		if damaged(err) {
			err = f(t)
		}
		return err
	}
}

// Lookup implements link.Store. It never lags behind.
func (s *Links) Lookup(ctx context.Context, k link.Key) (link.Target, error) {
	var target link.Target
	err := s.read(ctx, twice(func(t *tx) error {
		var needs uint64
		found, err := s.find(t, k, sqlTargetAt, func(row []driver.Value) (bool, error) {
			key, got, bits, err := scanTarget(row)
			target, needs = got, bits
			return key == k, err
		})
		// What is spent decides where it leads, and has no part in checksum; what is needed is in extra.
		if err == nil && (target.Limited || needs != 0) && found {
			var l link.Link
			if _, l, found, err = s.byKey(t, k); err == nil && found {
				target, err = l.Leads()
			}
		}
		if err == nil && !found {
			return link.ErrNotFound
		}
		return err
	}))
	if err != nil {
		s.damages.met(k, err)
		return link.Target{}, fmt.Errorf("look up %s: %w", k, err)
	}
	return target, nil
}

// Get implements link.Store.
func (s *Links) Get(ctx context.Context, k link.Key) (link.Link, error) {
	return s.get(ctx, s.readers, k)
}

func (s *Links) get(ctx context.Context, from *readers, k link.Key) (link.Link, error) {
	var l link.Link
	err := s.lend(ctx, from, twice(func(t *tx) error {
		_, got, found, err := s.byKey(t, k)
		if err == nil && !found {
			return link.ErrNotFound
		}
		l = got
		return err
	}))
	if err != nil {
		s.damages.met(k, err)
		return link.Link{}, fmt.Errorf("get %s: %w", k, err)
	}
	return l, nil
}

// GetMany implements link.ManyGetter. It rests between two links.
func (s *Links) GetMany(ctx context.Context, keys []link.Key) ([]link.Link, error) {
	if len(keys) > link.MaxPage {
		return nil, fmt.Errorf("get %d links: %w", len(keys), link.ErrInvalid)
	}
	links := make([]link.Link, len(keys))
	err := s.config.Aside.run(ctx, func(ctx context.Context) error {
		for i, k := range keys {
			s.config.Rest()
			var err error
			if links[i], err = s.get(ctx, s.lists, k); err != nil && !link.Absent(err) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return links, nil
}

// Expired implements link.Store.
func (s *Links) Expired(ctx context.Context, after link.Cursor, before time.Time, n int) ([]link.Key, link.Cursor, error) {
	at, err := parseExpiryCursor(after)
	if err != nil {
		return nil, "", err
	}
	var keys []link.Key
	err = s.readMany(ctx, func(t *tx) error {
		return t.each(sqlExpired, func(row []driver.Value) error {
			sc := scanner{row: row}
			at.ms = sc.int()
			at.key = link.Key{Domain: link.Domain(sc.text()), Code: link.Code(sc.text())}
			keys = append(keys, at.key)
			return sc.damage()
		}, at.ms, string(at.key.Domain), string(at.key.Code), before.UnixMilli(), int64(n))
	})
	if err != nil {
		return nil, "", fmt.Errorf("walk expired links: %w", err)
	}
	if len(keys) == 0 {
		return nil, after, nil
	}
	return keys, at.cursor(), nil
}

// Head implements link.Store.
func (s *Links) Head(ctx context.Context) (link.Sequence, error) {
	var head int64
	err := s.read(ctx, func(t *tx) (err error) {
		head, _, err = t.number(sqlLastChange)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the head of the change log: %w", err)
	}
	return link.Sequence(head), nil
}

// Chosen implements link.Store.
func (s *Links) Chosen(ctx context.Context, after link.Cursor, n int) ([]link.Key, link.Cursor, error) {
	last, err := parseRowCursor(after)
	if err != nil {
		return nil, "", err
	}
	var keys []link.Key
	err = s.readMany(ctx, func(t *tx) error {
		return t.each(sqlChosen, func(row []driver.Value) error {
			sc := scanner{row: row}
			last = sc.int()
			keys = append(keys, link.Key{Domain: link.Domain(sc.text()), Code: link.Code(sc.text())})
			return sc.damage()
		}, last, int64(n))
	})
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("walk codes that were not minted: %w", err)
	case len(keys) < n:
		return keys, "", nil
	}
	return keys, rowCursor(last), nil
}

var errShortRow = errors.New("a column has another type")

// damage says whether a column was missing or of another type.
func (s *scanner) damage() error {
	if s.bad {
		return fmt.Errorf("%w: %w: %w", link.ErrUnavailable, ErrCorrupt, errShortRow)
	}
	return nil
}

// Count returns how many rows there are, tombstones included. It reads an index from end
// to end.
func (s *Links) Count(ctx context.Context) (n uint64, err error) {
	err = s.readMany(ctx, func(t *tx) error {
		rows, _, err := t.number(sqlCountLinks)
		n = uint64(rows)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count links: %w", err)
	}
	return n, nil
}
