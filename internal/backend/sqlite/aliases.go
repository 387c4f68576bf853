package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"

	"curt/internal/link"
)

// A damaged key in aliases may lead the search for another astray: its link would answer 404,
// and its code could be given to somebody else. Such a search ends beside the damaged key, so
// whoever finds nothing looks at what is beside: an entry is sound unless its row is whole and
// bears another key. Before a new entry would hide a damaged one, all are made anew from the
// links, which have the same names.

// aliasRow returns the row that aliases names for a key; sound is whether its entries beside
// are.
func aliasRow(t *tx, k link.Key) (n int64, found, sound bool, err error) {
	n, found, err = t.number(sqlAlias, string(k.Domain), string(k.Code))
	if err != nil || found {
		return n, found, true, err
	}
	for _, beside := range [...]string{sqlAliasBelow, sqlAliasAbove} {
		differs, at := false, int64(0)
		_, err := t.one(beside, func(row []driver.Value) error {
			differs = row[2] != nil && (row[0] != row[2] || row[1] != row[3])
			at, _ = row[4].(int64)
			return nil
		}, string(k.Domain), string(k.Code))
		if err == nil && differs {
			_, err = t.one(sqlLinkAt, func(row []driver.Value) error {
				_, _, err := scanLink(row)
				differs = err == nil // else the row is damaged rather than the entry
				return nil
			}, at)
		}
		switch {
		case err != nil:
			return 0, false, false, err
		case differs:
			n, found, err = t.number(sqlAliasRow, string(k.Domain), string(k.Code))
			return n, found, false, err
		}
	}
	return 0, false, true, nil
}

// mendChunk is how many rows are read before the walk goes on from the last.
const mendChunk = 10_000

// mendAliases makes aliases anew, in the writer's transaction. Rows that are damaged keep the
// names that lead to them.
func (s *Links) mendAliases(t *tx) error {
	var lost []int64
	for after, more := int64(math.MinInt64), true; more; {
		seen := 0
		err := t.each(sqlAliasLinks, func(row []driver.Value) (err error) {
			seen++
			if after, _, err = scanLink(row); isDamaged(err) {
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
		return fmt.Errorf("name the rows that are damaged: %w", err)
	}
	for _, statement := range [...]string{sqlKeepAliases, sqlDropAliases, sqlMakeAliases, sqlKeptAliases, sqlForgetKept} {
		args := []any{}
		if statement == sqlKeepAliases || statement == sqlMakeAliases {
			args = append(args, string(rows))
		}
		if _, err := t.exec(statement, args...); err != nil {
			return err
		}
	}
	s.config.Log.WarnContext(context.Background(), "an entry of aliases was damaged; all were made anew", slog.Int("damaged_links", len(lost)))
	return nil
}

// The statements of mendAliases: each reads whole tables.
const (
	sqlAliasLinks  = `SELECT ` + linkColumns + ` FROM links WHERE n > ? AND n < 0 ORDER BY n LIMIT ?`
	sqlKeepAliases = `CREATE TEMP TABLE kept AS SELECT domain, code, n FROM aliases WHERE n IN (SELECT value FROM json_each(?))`
	sqlDropAliases = `DELETE FROM aliases`
	sqlMakeAliases = `INSERT OR IGNORE INTO aliases (domain, code, n)
	SELECT domain, code, n FROM links WHERE n < 0 AND n NOT IN (SELECT value FROM json_each(?))`
	sqlKeptAliases = `INSERT OR IGNORE INTO aliases (domain, code, n) SELECT domain, code, n FROM temp.kept`
	sqlForgetKept  = `DROP TABLE temp.kept`
)
