package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"

	"curt/internal/backend/sqlite/linkrow"
	"curt/internal/backend/sqlite/reservations"
	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
)

const (
	sqlAlias = `SELECT n FROM aliases WHERE domain = ? AND code = ?`
	// The entries beside a name, with what their rows bear: a search that a damaged key leads
	// astray ends beside it.
	aliasBeside   = `SELECT a.domain, a.code, l.domain, l.code, a.n FROM aliases AS a LEFT JOIN links AS l ON l.n = a.n `
	sqlAliasBelow = aliasBeside + `WHERE (a.domain, a.code) < (?, ?) ORDER BY a.domain DESC, a.code DESC LIMIT 1`
	sqlAliasAbove = aliasBeside + `WHERE (a.domain, a.code) > (?, ?) ORDER BY a.domain, a.code LIMIT 1`
	// The row of a name without the index, where that is damaged: it reads every such row.
	sqlAliasRow = `SELECT n FROM links WHERE n < 0 AND domain = ? AND code = ?`
)

// A damaged key in aliases may lead the search for another astray: its link would answer 404,
// and its code could be given to somebody else. Such a search ends beside the damaged key, so
// whoever finds nothing looks at what is beside: an entry is sound unless its row is whole and
// bears another key. Before a new entry would hide a damaged one, all are made anew from the
// links, which have the same names.

// aliasRow returns the row that aliases names for a key, none for one that is reserved; sound is whether
// its entries beside are.
func aliasRow(t *sqlitedb.Tx, k link.Key) (n int64, found, sound bool, err error) {
	n, found, err = t.Number(sqlAlias, string(k.Domain), string(k.Code))
	if err != nil || found {
		return n, found && n != reservations.Row, true, err
	}
	for _, beside := range [...]string{sqlAliasBelow, sqlAliasAbove} {
		differs, at := false, int64(0)
		_, err := t.One(beside, func(row []driver.Value) error {
			differs = row[2] != nil && (row[0] != row[2] || row[1] != row[3])
			at, _ = row[4].(int64)
			return nil
		}, string(k.Domain), string(k.Code))
		if err == nil && differs {
			_, err = t.One(linkrow.SelectRow, func(row []driver.Value) error {
				_, _, err := linkrow.Scan(row)
				differs = err == nil // else the row is damaged rather than the entry
				return nil
			}, at)
		}
		switch {
		case err != nil:
			return 0, false, false, err
		case differs:
			n, found, err = t.Number(sqlAliasRow, string(k.Domain), string(k.Code))
			return n, found, false, err
		}
	}
	return 0, false, true, nil
}

// soundAliases makes aliases anew where a damaged entry lies beside the place of a new one. hidden: the key is
// there.
func soundAliases(t *sqlitedb.Tx, k link.Key, log *slog.Logger) (hidden bool, err error) {
	_, hidden, sound, err := aliasRow(t, k)
	if err == nil && !hidden && !sound {
		err = mendAliases(t, log)
	}
	return hidden, err
}

// mendChunk is how many rows are read before the walk goes on from the last.
const mendChunk = 10_000

const (
	sqlAliasLinks  = `SELECT ` + linkrow.Columns + ` FROM links WHERE n > ? AND n < 0 ORDER BY n LIMIT ?`
	sqlKeepAliases = `CREATE TEMP TABLE kept AS SELECT domain, code, n FROM aliases WHERE n IN (SELECT value FROM json_each(?))`
	sqlDropAliases = `DELETE FROM aliases`
	sqlMakeAliases = `INSERT OR IGNORE INTO aliases (domain, code, n)
	SELECT domain, code, n FROM links WHERE n < 0 AND n NOT IN (SELECT value FROM json_each(?))`
	sqlKeptAliases = `INSERT OR IGNORE INTO aliases (domain, code, n) SELECT domain, code, n FROM temp.kept`
	sqlForgetKept  = `DROP TABLE temp.kept`
)

// mendAliases makes aliases anew, in the writer's transaction. Rows that are damaged keep the
// names that lead to them.
func mendAliases(t *sqlitedb.Tx, log *slog.Logger) error {
	var lost []int64
	for after, more := int64(math.MinInt64), true; more; {
		seen := 0
		err := t.Each(sqlAliasLinks, func(row []driver.Value) (err error) {
			seen++
			if after, _, err = linkrow.Scan(row); linkrow.IsDamaged(err) {
				lost, err = append(lost, after), nil
			}
			return err
		}, after, int64(mendChunk))
		if err != nil {
			return err
		}
		more = seen == mendChunk
	}
	rows, err := json.Marshal(append([]int64{}, lost...))
	if err != nil {
		return fmt.Errorf("find the damaged rows: %w", err)
	}
	for _, statement := range [...]string{sqlKeepAliases, sqlDropAliases, sqlMakeAliases, sqlKeptAliases, reservations.SQLRetainAliases, sqlForgetKept} {
		args := []any{}
		if statement == sqlKeepAliases || statement == sqlMakeAliases {
			args = append(args, string(rows))
		}
		if _, err := t.Exec(statement, args...); err != nil {
			return err
		}
	}
	log.WarnContext(context.Background(), "alias index damaged, rebuilt", slog.Int("damaged_links", len(lost)))
	return nil
}
