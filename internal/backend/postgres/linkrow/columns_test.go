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
	var read, create, changing []string
	fields := link.Fields()
	for i := range fields {
		f := &fields[i]
		if f.Column == "" {
			continue
		}
		read = append(read, f.Column)
		if Written(f) {
			create = append(create, f.Column)
		}
		if Written(f) && !f.Fixed {
			changing = append(changing, f.Column)
		}
	}
	follow := []string{"digest", "needs", "extra"}
	for name, c := range map[string]struct {
		columns string
		want    []string
	}{
		"read":     {Columns, append(read, "needs", "extra")},
		"create":   {CreateColumns + ", tags", append(slices.Clone(follow), create...)},
		"changing": {ChangingColumns + ", tags", append(slices.Clone(follow), changing...)},
	} {
		got := strings.FieldsFunc(strings.ReplaceAll(c.columns, "minted::int", "minted"), func(r rune) bool { return strings.ContainsRune(", \n\t", r) })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
