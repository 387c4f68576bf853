package transfer

import (
	"encoding/json"
	"strings"
	"testing"

	"curt/internal/exchange"
	"curt/internal/job"
)

func TestFailuresAreWrittenAlone(t *testing.T) {
	lines := `{"line":2,"short_code":"abc","short_url":"https://curt.test/abc"}` + "\n" + `{"line":3,"short_code":"=1","error":"short_code: <taken>"}` + "\n" + `{"line":4,"skipped":"deleted"}` + "\n"
	var got strings.Builder
	if err := WriteFailures(&got, strings.NewReader(lines)); err != nil || got.String() != strings.SplitAfter(lines, "\n")[1] {
		t.Errorf("%q, %v", got.String(), err)
	}
	got.Reset()
	if err := WriteCSV(&got, strings.NewReader(lines), true); err != nil || got.String() != "3,'=1,,,short_code: <taken>\n" {
		t.Errorf("%q, %v", got.String(), err)
	}
	if err := WriteFailures(&got, strings.NewReader(lines+"{")); err == nil {
		t.Error("a result that is cut off is no error")
	}
}

// What the columns of a hostile file take of the progress is bounded, as jobs keep it whole.
func TestColumnsOfAJobAreBounded(t *testing.T) {
	name := strings.Repeat("<", 60)
	all := columns(make([]exchange.Column, 3))
	if len(all) != 3 {
		t.Errorf("%d columns", len(all))
	}
	many := make([]exchange.Column, 10_000)
	for i := range many {
		many[i] = exchange.Column{Name: name, Field: "title", Sample: name}
	}
	text, err := json.Marshal(columns(many))
	if err != nil || len(text) > job.MaxProgress/2 || len(text) < maxColumns/2 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
