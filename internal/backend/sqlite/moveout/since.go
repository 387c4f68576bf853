package moveout

import (
	"database/sql/driver"
	"errors"
	"fmt"

	"curt/internal/backend/sqlite"
	"curt/internal/backend/sqlite/linkrow"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
)

// Heads are the newest entries of the logs of a curt.db: of changes, and of creates with counted
// codes.
type Heads struct {
	Changes int64 `json:"changes"`
	Creates int64 `json:"creates"`
}

// ErrTrimmed means that the logs have not all that happened since: the links are read anew.
var ErrTrimmed = errors.New("the logs of changes were trimmed")

const (
	sqlHeads = `SELECT (SELECT coalesce(max(seq), 0) FROM changes), (SELECT coalesce(max(seq), 0) FROM creates)`
	sqlFirst = `SELECT (SELECT coalesce(min(seq), 0) FROM changes), (SELECT coalesce(min(seq), 0) FROM creates)`
)

func heads(t *sqlitedb.Tx, query string) (h Heads, err error) {
	_, err = t.One(query, func(row []driver.Value) error {
		sc := sqlitedb.Scanner{Row: row}
		h = Heads{sc.Int(), sc.Int()}
		return sc.Damage()
	})
	return h, err
}

// Heads returns where the logs end.
func (s *Source) Heads() (h Heads, err error) {
	err = s.View("read the logs of", func(t *sqlitedb.Tx) error {
		h, err = heads(t, sqlHeads)
		return err
	})
	return h, err
}

const (
	sqlChangedKeys = `SELECT seq, domain, code FROM changes WHERE seq > ? ORDER BY seq LIMIT ?`
	sqlCreatedRows = `SELECT seq, rows FROM creates WHERE seq > ? ORDER BY seq LIMIT ?`
)

// Since returns links that were created or changed after the heads, as they are now, and the heads
// that they reach; the same heads are the end. It reads up to n entries of each log, so that there
// may be fewer links, or, where a transaction created many, more.
func (s *Source) Since(from Heads, n int) (links []link.Link, damaged []error, to Heads, err error) {
	to = from
	var keys []link.Key
	err = s.View("read the logs of", func(t *sqlitedb.Tx) error {
		if err := kept(t, from); err != nil {
			return err
		}
		seen := map[link.Key]bool{}
		err := t.Each(sqlChangedKeys, func(row []driver.Value) error {
			sc := sqlitedb.Scanner{Row: row}
			to.Changes = sc.Int()
			k := link.Key{Domain: link.Domain(sc.Text()), Code: link.Code(sc.Text())}
			if k.Code != "" && !seen[k] { // one without a key is no write of a link
				seen[k] = true
				keys = append(keys, k)
			}
			return sc.Damage()
		}, from.Changes, int64(n))
		if err != nil {
			return err
		}
		links, damaged, err = created(t, from.Creates, n, &to, seen)
		return err
	})
	if err != nil {
		return nil, nil, from, err
	}
	changed, alsoDamaged, err := s.Get(keys)
	return append(links, changed...), append(damaged, alsoDamaged...), to, err
}

// created returns the links of the log of creates, without those that changes have.
func created(t *sqlitedb.Tx, from int64, n int, to *Heads, seen map[link.Key]bool) (links []link.Link, damaged []error, err error) {
	var rows []int64
	err = t.Each(sqlCreatedRows, func(row []driver.Value) error {
		sc := sqlitedb.Scanner{Row: row}
		to.Creates = sc.Int()
		of, err := sqlite.RowsOf(sc.Blob())
		rows = append(rows, of...)
		return errors.Join(err, sc.Damage())
	}, from, int64(n))
	if err != nil {
		return nil, nil, err
	}
	for _, at := range rows {
		_, err := t.One(linkrow.SelectRow, func(row []driver.Value) error {
			_, l, err := linkrow.Scan(row)
			if err == nil && !seen[l.Key] {
				links = append(links, l)
			}
			return err
		}, at)
		switch {
		case linkrow.IsDamaged(err):
			damaged = append(damaged, err)
		case err != nil:
			return nil, nil, err
		}
	}
	return links, damaged, nil
}

// kept returns ErrTrimmed unless the logs have all entries after the heads.
func kept(t *sqlitedb.Tx, from Heads) error {
	first, err := heads(t, sqlFirst)
	if err != nil {
		return err
	}
	last, err := heads(t, sqlHeads)
	if err != nil {
		return err
	}
	for _, log := range []struct {
		name              string
		from, first, last int64
	}{{"changes", from.Changes, first.Changes, last.Changes}, {"creates", from.Creates, first.Creates, last.Creates}} {
		if log.from < log.first-1 || log.from > log.last {
			return fmt.Errorf("%s has entries %d to %d, of what follows %d: %w", log.name, log.first, log.last, log.from, ErrTrimmed)
		}
	}
	return nil
}
