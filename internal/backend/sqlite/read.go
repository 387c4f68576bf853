package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	"curt/internal/backend/sqlite/linklist"
	"curt/internal/backend/sqlite/linkrow"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/codegen"
	"curt/internal/link"
)

// linkReader reads links.
type linkReader struct {
	db      *sqlitedb.Store
	config  LinksConfig
	codes   *codegen.Permutation
	damages damages
}

// place returns the row where a code lies if its strategy issued it.
func (s *linkReader) place(c link.Code) (n int64, ok bool) { return s.codes.Position(c) }

// find runs a query for one row at the row of a key: where the permutation puts it,
// or where aliases says. scan gets every row that may be it and says whether it is,
// because a place holds one link while two domains may use one code.
func (s *linkReader) find(t *sqlitedb.Tx, k link.Key, query string, scan func(row []driver.Value) (bool, error)) (found bool, err error) {
	var damaged error // the row at the place of the code, which may be another domain's
	at := func(n int64) error {
		_, err := t.One(query, func(row []driver.Value) error {
			found, err = scan(row)
			return err
		}, n)
		return err
	}
	if n, ok := s.place(k.Code); ok {
		if damaged = at(n); damaged != nil && !linkrow.IsDamaged(damaged) || found {
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
	if n, ok, err = t.Number(sqlAliasRow, string(k.Domain), string(k.Code)); err == nil && ok {
		err = at(n)
	}
	if err != nil {
		return false, err
	}
	if n = astray; !found {
		return false, &link.DamagedError{Key: k, Err: fmt.Errorf("its alias points to row %d of another link: %w", n, sqlitedb.ErrCorrupt)}
	}
	return true, nil
}

// byKey returns the row of a key.
func (s *linkReader) byKey(t *sqlitedb.Tx, k link.Key) (n int64, l link.Link, found bool, err error) {
	found, err = s.find(t, k, linkrow.SelectRow, func(row []driver.Value) (bool, error) {
		var err error
		n, l, err = linkrow.Scan(row)
		return l.Key == k, err
	})
	return n, l, found, err
}

// twice is for an f that may be called again: what the disk failed to read once it may read the
// next time, and a visitor need not know.
func twice(f func(t *sqlitedb.Tx) error) func(t *sqlitedb.Tx) error {
	return func(t *sqlitedb.Tx) error {
		err := f(t)
		if sqlitedb.IsDamage(err) {
			err = f(t)
		}
		return err
	}
}

const sqlTargetAt = `SELECT ` + linkrow.TargetColumns + ` FROM links WHERE n = ?`

// Lookup implements link.Store. It never lags behind.
func (s *linkReader) Lookup(ctx context.Context, k link.Key) (link.Target, error) {
	var target link.Target
	err := s.db.Read(ctx, twice(func(t *sqlitedb.Tx) error {
		var needs uint64
		found, err := s.find(t, k, sqlTargetAt, func(row []driver.Value) (bool, error) {
			key, got, bits, err := linkrow.ScanTarget(row)
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
func (s *linkReader) Get(ctx context.Context, k link.Key) (link.Link, error) {
	return s.get(ctx, s.db.Read, k)
}

func (s *linkReader) get(ctx context.Context, read func(context.Context, func(*sqlitedb.Tx) error) error, k link.Key) (link.Link, error) {
	var l link.Link
	err := read(ctx, twice(func(t *sqlitedb.Tx) error {
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
func (s *linkReader) GetMany(ctx context.Context, keys []link.Key) ([]link.Link, error) {
	if len(keys) > link.MaxPage {
		return nil, fmt.Errorf("get %d links: %w", len(keys), link.ErrInvalid)
	}
	links := make([]link.Link, len(keys))
	err := s.config.Yielder.Queue(ctx, func(ctx context.Context) error {
		for i, k := range keys {
			s.config.Yielder.Yield()
			var err error
			if links[i], err = s.get(ctx, s.db.ReadList, k); err != nil && !link.Absent(err) {
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

// List implements link.Store.
func (s *linkReader) List(ctx context.Context, f link.Filter, p link.Page) (page link.Slice, err error) {
	w, err := linklist.New(f, p, s.damages.met)
	if err == nil {
		err = s.db.ReadMany(ctx, func(t *sqlitedb.Tx) (err error) {
			page, err = w.Page(t)
			return err
		})
	}
	if err != nil {
		return link.Slice{}, fmt.Errorf("list: %w", err)
	}
	return page, nil
}

const sqlExpired = `SELECT expires, domain, code FROM links
	WHERE expires <> 0 AND status = 1 AND (expires, domain, code) > (?, ?, ?) AND expires <= ?
	ORDER BY expires, domain, code LIMIT ?`

// Expired implements link.Store.
func (s *linkReader) Expired(ctx context.Context, after link.Cursor, before time.Time, n int) ([]link.Key, link.Cursor, error) {
	at, err := link.ParseNumberedKey(after)
	if err != nil {
		return nil, "", err
	}
	var keys []link.Key
	err = s.db.ReadMany(ctx, func(t *sqlitedb.Tx) error {
		return t.Each(sqlExpired, func(row []driver.Value) error {
			sc := sqlitedb.Scanner{Row: row}
			at.N = sc.Int()
			at.Key = link.Key{Domain: link.Domain(sc.Text()), Code: link.Code(sc.Text())}
			keys = append(keys, at.Key)
			return sc.Damage()
		}, at.N, string(at.Key.Domain), string(at.Key.Code), before.UnixMilli(), int64(n))
	})
	if err != nil {
		return nil, "", fmt.Errorf("walk expired links: %w", err)
	}
	if len(keys) == 0 {
		return nil, after, nil
	}
	return keys, at.Cursor(), nil
}

const sqlChosen = `SELECT n, domain, code FROM links WHERE n > ? AND n < 0 AND minted = 0 ORDER BY n LIMIT ?`

// Chosen implements link.Store.
func (s *linkReader) Chosen(ctx context.Context, after link.Cursor, n int) ([]link.Key, link.Cursor, error) {
	last, err := sqlitedb.ParseRowCursor(after)
	if err != nil {
		return nil, "", err
	}
	var keys []link.Key
	err = s.db.ReadMany(ctx, func(t *sqlitedb.Tx) error {
		return t.Each(sqlChosen, func(row []driver.Value) error {
			sc := sqlitedb.Scanner{Row: row}
			last = sc.Int()
			keys = append(keys, link.Key{Domain: link.Domain(sc.Text()), Code: link.Code(sc.Text())})
			return sc.Damage()
		}, last, int64(n))
	})
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("walk chosen codes: %w", err)
	case len(keys) < n:
		return keys, "", nil
	}
	return keys, sqlitedb.RowCursor(last), nil
}

const sqlCountLinks = `SELECT count(*) FROM links`

// Count returns how many rows there are, tombstones included. It reads an index from end
// to end.
func (s *linkReader) Count(ctx context.Context) (n uint64, err error) {
	err = s.db.ReadMany(ctx, func(t *sqlitedb.Tx) error {
		rows, _, err := t.Number(sqlCountLinks)
		n = uint64(rows)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count links: %w", err)
	}
	return n, nil
}

// mostDamages bounds what is remembered: beyond it the file is damaged rather than a link.
const mostDamages = 1000

// damages are the links that were found damaged since the start, each once. A link that was
// discarded is none of them any more.
type damages struct {
	mu    sync.Mutex
	found map[string]error // guarded by mu; by what names the link for people
}

// met notes an error, if it is one of a damaged link. k is the key that was asked for; zero =
// the error names the link.
func (d *damages) met(k link.Key, err error) {
	of, is := errors.AsType[*link.DamagedError](err)
	if !is && !errors.Is(err, sqlitedb.ErrCorrupt) {
		return
	}
	if is && k == (link.Key{}) {
		k = of.Key
	}
	name := k.String()
	if k == (link.Key{}) {
		name = err.Error()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.found == nil {
		d.found = map[string]error{}
	}
	if _, known := d.found[name]; known || len(d.found) < mostDamages {
		d.found[name] = err
	}
}

// gone forgets a link that is damaged no more.
func (d *damages) gone(k link.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.found, k.String())
}

// Damaged returns how many links were found damaged since the start, up to 1,000, and names
// one of them for people. It does no I/O.
func (s *linkReader) Damaged() (n int, example string) {
	s.damages.mu.Lock()
	defer s.damages.mu.Unlock()
	for name := range s.damages.found {
		if example == "" || name < example {
			example = name
		}
	}
	return len(s.damages.found), example
}
