package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres"
	"curt/internal/link"
	"curt/internal/link/linktest"
)

// plans asks PostgreSQL how it would run each statement of a request. With scans of whole
// tables forbidden it takes one only where no index helps; none of ours may, and no walk
// in the order of an index may sort.
func plans(t *testing.T, d *databases) {
	s := d.fresh(t)
	url, _ := d.urls.Load(s)
	var entries []link.Creation
	for i := range 2000 {
		l := newLink(i, fmt.Sprintf("code-%d", i))
		l.Destination = fmt.Sprintf("https://example.com/%d", i)
		l.Workspace = link.WorkspaceID(fmt.Sprintf("workspace%d", i%20))
		entries = append(entries, link.Creation{Link: l})
	}
	if _, err := s.CreateMany(t.Context(), linktest.Epoch(), entries); err != nil {
		t.Fatal(err)
	}
	exec(t, url.(string), "ANALYZE links") // the choice is that of a table in use
	c, err := pgx.Connect(t.Context(), url.(string))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }()
	noScans(t, c)
	index := map[string]string{
		"target": "links_pkey", "link": "links_pkey", "twins": "links_by_twins",
		"expired": "links_by_expiry", "creates ended": "links_made", "chosen": "links_unminted", "changes": "changes_pkey",
		"list oldest": "links_by_age", "list newest": "Backward using links_by_age", "list workspace oldest": "links_by_workspace",
		"reserve": "links_by_workspace", "occupants": "links_pkey", "redeem": "links_pkey", "release": "links_pkey", "remove lapsed": "links_by_age",
		"list workspace newest": "Backward using links_by_workspace", "forget records": "idempotency_by_age",
		"entries of": "journal_by_entity", "entries by": "journal_by_actor", "standing": "journal_by_link",
		"pending cases": "cases_pending", "link appeal": "appeals_by_link", "expired destinations": "destinations_by_age", "verdicts": "journal_verdicts",
		"take keys": "unused_keys_of", "abandon keys": "used_keys_by_holder", "renew keys": "used_keys_by_sight", "level of keys": "used_keys_by_time",
	}
	for name, statement := range postgres.Statements() {
		plan := useIndexes(t, c, name, statement, index[name])
		if strings.HasPrefix(name, "list") && strings.Contains(plan, "Sort") {
			t.Errorf("%s sorts:\n%s", name, plan)
		}
		delete(index, name)
	}
	if len(index) > 0 {
		t.Errorf("no such statements: %v", index)
	}
}

// noScans leaves a connection scans of whole tables only where no index helps.
func noScans(t *testing.T, c *pgx.Conn) {
	t.Helper()
	for _, set := range []string{"enable_seqscan = off", "enable_bitmapscan = off", "plan_cache_mode = force_generic_plan"} {
		if _, err := c.Exec(t.Context(), "SET "+set); err != nil {
			t.Fatal(err)
		}
	}
}

// useIndexes returns the plan of a statement, which may read no whole table and must use
// an index if one is named.
func useIndexes(t *testing.T, c *pgx.Conn, name, statement, index string) string {
	t.Helper()
	plan := explain(t, c, statement)
	if strings.Contains(plan, "Seq Scan") {
		t.Errorf("%s reads a whole table:\n%s", name, plan)
	}
	if !strings.Contains(plan, index) {
		t.Errorf("%s does not use %s:\n%s", name, index, plan)
	}
	return plan
}

// explain returns the plan of a statement for parameters that are not known yet.
func explain(t *testing.T, c *pgx.Conn, statement string) string {
	t.Helper()
	exec := func(sql string) {
		t.Helper()
		if _, err := c.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec("PREPARE asked AS " + statement)
	defer exec("DEALLOCATE asked")
	params := 0
	for strings.Contains(statement, fmt.Sprintf("$%d", params+1)) {
		params++
	}
	call := "EXPLAIN (COSTS OFF) EXECUTE asked"
	if params > 0 {
		call += "(" + strings.TrimSuffix(strings.Repeat("NULL, ", params), ", ") + ")"
	}
	rows, err := c.Query(t.Context(), call, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", call, err)
	}
	return strings.Join(lines, "\n")
}
