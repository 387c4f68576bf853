package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"curt/internal/clicks"
	"curt/internal/link"
)

// Renew moves the snapshot to the state of now, and lets go of the one it held.
func (s *Snapshot) Renew() error {
	err := s.conn.do(func(t *tx) error {
		if _, err := t.exec(sqlRollback); err != nil {
			return err
		}
		if _, err := t.exec(sqlBeginRead); err != nil {
			return err
		}
		_, _, err := t.number(sqlTables)
		return err
	})
	if err != nil {
		return fmt.Errorf("read %s anew: %w", s.path, broken(s.path, err))
	}
	return nil
}

// Links returns up to n links of a curt.db, tombstones included, in the order in which
// they lie, and the cursor after the last; the empty one at the end. A walk with Renew
// between the calls sees every link that existed throughout once. Rows whose checksum
// does not hold are not in the page; each has its error, wrapped ErrCorrupt, in damaged.
func (s *Snapshot) Links(after link.Cursor, n int) (page []link.Link, damaged []error, next link.Cursor, err error) {
	var columns string
	err = s.conn.do(func(t *tx) (err error) {
		columns, err = columnsOf(t)
		return err
	})
	if err != nil {
		return nil, nil, "", fmt.Errorf("read %s: %w", s.path, broken(s.path, err))
	}
	err = s.page(after, n, `SELECT `+columns+` FROM links WHERE n > ? ORDER BY n LIMIT ?`, &next, func(row []driver.Value) (int64, error) {
		at, l, err := scanLink(row)
		if errors.Is(err, ErrCorrupt) {
			damaged = append(damaged, err)
			return at, nil
		}
		page = append(page, l)
		return at, err
	})
	return page, damaged, next, err
}

// Totals returns up to n totals of a clicks.db, as Links does, without those of groups:
// they are sums of what is there.
func (s *Snapshot) Totals(after link.Cursor, n int) (page []clicks.LinkDelta, next link.Cursor, err error) {
	err = s.page(after, n, sqlTotalsFrom, &next, func(row []driver.Value) (int64, error) {
		r := scanner{row: row}
		at := r.int()
		d := clicks.LinkDelta{Key: link.Key{Domain: link.Domain(r.text()), Code: link.Code(r.text())}}
		d.Total.Counts = r.counts()
		d.Total.FirstSeen, d.Total.LastClicked = r.int(), r.int()
		if !clicks.IsGroup(d.Key) {
			page = append(page, d)
		}
		return at, r.damage()
	})
	return page, next, err
}

// Rollups returns up to n rows of a clicks.db, oldest day first, as Totals does: each with
// its link and its one bucket.
func (s *Snapshot) Rollups(after link.Cursor, n int) (page []clicks.LinkDelta, next link.Cursor, err error) {
	var numbers []int64
	err = s.page(after, n, sqlRollupsFrom, &next, func(row []driver.Value) (int64, error) {
		id, b, err := scanRollup(row)
		numbers = append(numbers, id>>clicks.RowLinkShift&clicks.RowLinkMask)
		page = append(page, clicks.LinkDelta{Buckets: []clicks.BucketDelta{b}})
		return id, err
	})
	if err == nil {
		err = s.conn.do(func(t *tx) error { return nameRollups(t, numbers, page) })
	}
	if err != nil {
		return nil, "", fmt.Errorf("read %s: %w", s.path, broken(s.path, err))
	}
	return slices.DeleteFunc(page, func(d clicks.LinkDelta) bool { return clicks.IsGroup(d.Key) }), next, nil
}

// nameRollups finds the links of the numbers.
func nameRollups(t *tx, numbers []int64, page []clicks.LinkDelta) error {
	for i, n := range numbers {
		found, err := t.one(sqlKeyOf, func(row []driver.Value) error {
			r := scanner{row: row}
			page[i].Key = link.Key{Domain: link.Domain(r.text()), Code: link.Code(r.text())}
			return r.damage()
		}, n)
		if err == nil && !found {
			err = fmt.Errorf("roll-ups of link %d, which is unknown: %w", n, ErrCorrupt)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// page walks a table by its numbers; row returns the number of what it was given.
func (s *Snapshot) page(after link.Cursor, n int, query string, next *link.Cursor, row func([]driver.Value) (int64, error)) error {
	from, err := parseRowCursor(after)
	if err != nil {
		return err
	}
	seen := 0
	err = s.conn.do(func(t *tx) error {
		return t.each(query, func(values []driver.Value) (err error) {
			seen++
			from, err = row(values)
			return err
		}, from, int64(n))
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", s.path, broken(s.path, err))
	}
	if *next = ""; seen == n {
		*next = rowCursor(from)
	}
	return nil
}
