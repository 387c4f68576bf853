package sqlite_test

import (
	"slices"
	"strings"
	"testing"

	"curt/internal/backend/sqlite"
)

// The plan of every statement of a request is a search in some B-tree: none reads a
// table from end to end, and none sorts what it found.
func TestLinksPlans(t *testing.T) {
	s := new(files).fresh(t)
	for name, query := range sqlite.RequestQueries() {
		plan, err := s.Plan(t.Context(), query)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for step := range strings.Lines(plan) {
			// An INSERT ... SELECT of one row of constants scans that row.
			if strings.HasPrefix(step, "SCAN") && !strings.HasPrefix(step, "SCAN CONSTANT ROW") || strings.Contains(step, "TEMP B-TREE") {
				t.Errorf("%s: %s", name, step)
			}
		}
	}
}

// The walks use the index made for them.
func TestLinksPlansUseTheirIndex(t *testing.T) {
	s := new(files).fresh(t)
	queries := sqlite.RequestQueries()
	for name, index := range map[string]string{
		"oldest": "links_by_age", "newest": "links_by_age", "link by id": "links_by_age",
		"twins": "links_by_twins", "has twin": "links_by_twins", "insert twinless": "links_by_twins", "twin place": "links_by_twins", "expired": "links_by_expiry", "alias": "PRIMARY KEY",
		"entries of": "journal_by_entity", "entries of both": "journal_by_entity", "entries by": "journal_by_actor",
		"newest entries": "journal_by_time", "standing": "journal_by_link",
		"open case": "(link=? AND closed=?)", "shown case": "(link=? AND closed=?)", "closed case": "cases_by_link", "taken case": "(link=? AND sequence=?)", "later case": "cases_closed_by (link=? AND sequence>?)",
		"cases by due": "cases_by_due (open=? AND (appealed_first,due,id)>(?,?,?))", "cases by score": "cases_by_score (open=? AND (gravest_first,due,id)>(?,?,?))",
		"cases by reports": "cases_by_reports (open=? AND (loudest_first,due,id)>(?,?,?))", "cases by newest": "cases_by_age (open=? AND (newest_first,id)>(?,?))",
		"count cases": "(open=?)", "pending cases": "cases_pending (id>?)", "forget notes": "cases_by_end", "erase notes": "case_notes_by_case", "link appeal": "appeals_by_link", "forget appeals": "appeals_by_end",
		"target at": "INTEGER PRIMARY KEY (rowid=?)", "ended at": "INTEGER PRIMARY KEY (rowid=?)", "chosen": "INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
		"first after": "INTEGER PRIMARY KEY (rowid>?)", "expiry changes": "INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
	} {
		plan, err := s.Plan(t.Context(), queries[name])
		if err != nil || !slices.ContainsFunc(strings.Split(plan, "\n"), func(step string) bool {
			return strings.HasPrefix(step, "SEARCH") && strings.Contains(step, index)
		}) {
			t.Errorf("%s does not search by %s: %v\n%s", name, index, err, plan)
		}
	}
	forget := `UPDATE changes SET fields = NULL WHERE domain = ? AND code = ? AND fields IS NOT NULL AND kind <> 'created'` // by a trigger
	if plan, err := s.Plan(t.Context(), forget); err != nil || plan != "SEARCH changes USING INDEX changes_old_values (domain=? AND code=?)" {
		t.Errorf("old values of a deleted link: %v\n%s", err, plan)
	}
}
