package links

import (
	"bytes"
	"strings"
	"testing"

	"curt.example/client"
	"curt/internal/cli"
)

// Only a file for spreadsheets gets apostrophes, and no text loses its own.
func TestApostrophesAreForSpreadsheets(t *testing.T) {
	for title, cell := range map[string]string{"=1+1": "'=1+1", "'tis": "'tis"} {
		l := client.Link{Title: title}
		var shown, file bytes.Buffer
		if err := printLink(cli.Terminal{Out: &shown}, false, &l); err != nil || !strings.Contains(shown.String(), "  "+title+"\n") {
			t.Errorf("%v: %s", err, shown.String())
		}
		if err := cli.NewTable(cli.Terminal{Out: &file}, cli.Format{CSV: true}, linkColumns()).Print([]client.Link{l}); err != nil || !strings.Contains(file.String(), ","+cell+",") {
			t.Errorf("%v: %s", err, file.String())
		}
	}
}
