package linkrow

import (
	"slices"
	"strings"
	"testing"

	"curt/internal/link"
)

// TestColumnsFollowTheTable: every statement names the columns in the order in which values of
// them are given and read.
func TestColumnsFollowTheTable(t *testing.T) {
	var all, changing []string
	for _, f := range link.Fields() {
		if f.Column == "" {
			continue
		}
		all = append(all, f.Column)
		if !f.Fixed && f.Column != "workspace" {
			changing = append(changing, f.Column)
		}
	}
	derived := []string{"digest", "checksum", "whole", "needs", "extra", "extra_sum"}
	read := strings.ReplaceAll(fieldColumns, workspaceName, "workspace")
	for name, c := range map[string]struct {
		columns, marks string
		want           []string
	}{
		"read":     {read, "", all},
		"stored":   {StoredColumns, StoredMarks, slices.Concat(all, derived, []string{"origin"})},
		"changing": {ChangingColumns, ChangingMarks, slices.Concat(changing, derived)},
	} {
		got := strings.FieldsFunc(c.columns, func(r rune) bool { return strings.ContainsRune(", \n\t", r) })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if c.marks != "" && strings.Count(c.marks, "?") != len(got) {
			t.Errorf("%s: %d marks for %d columns", name, strings.Count(c.marks, "?"), len(got))
		}
	}
}
