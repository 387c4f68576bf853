package coldcopy

import (
	"context"
	"fmt"
	"strings"

	"curt/internal/backend/coldsql"
)

// sqlBack stores a row in curt.db.
func (t *table) sqlBack() string {
	values := make([]string, len(t.columns))
	for i, c := range t.columns {
		if values[i] = fmt.Sprintf("$%d", i+1); c.name == "workspace" && t.sqlite != nil {
			values[i] = "(SELECT n FROM workspaces WHERE name = " + values[i] + ")"
		}
	}
	return "INSERT OR REPLACE INTO " + t.name + " (" + t.names(nil) + ") VALUES (" + strings.Join(values, ", ") + ")"
}

// Back stores all rows of a database in a new curt.db. VerifyBack of a Copier compares both then.
func Back(ctx context.Context, from, to coldsql.DB) (rows int64, err error) {
	c := New(nil, from)
	for _, t := range tables() {
		var args [][]any
		var failed error
		flush := func() {
			if failed == nil && len(args) > 0 {
				all := args
				failed = to.Write(ctx, len(all), func(tx coldsql.Tx) error { return tx.ExecMany(t.sqlBack(), all) })
			}
			args = nil
		}
		err := c.stored(ctx, &t, func(r *row) {
			rows++
			if args = append(args, r.values); len(args) >= c.page(&t) {
				flush()
			}
		})
		if flush(); err == nil {
			err = failed
		}
		if err != nil {
			return rows, fmt.Errorf("copy %s: %w", t.name, err)
		}
	}
	return rows, nil
}
