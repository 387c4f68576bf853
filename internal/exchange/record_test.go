package exchange_test

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"curt/internal/exchange"
	"curt/internal/link"
)

func links() map[string]link.Link {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	full := link.Link{
		ID: link.ID{1, 2, 3}, Key: link.Key{Domain: "go.example.com", Code: "-abc"}, Destination: "https://example.com/?a=1&b=<>",
		Workspace: "web", Status: link.Disabled, Safety: link.Quarantined, Redirect: 308,
		Starts: now, Expires: now.Add(time.Hour), Created: now, Updated: now.Add(time.Minute), MaxClicks: 1<<63 + 1, Spent: 7,
		Fallback: "https://example.com/gone", ForwardQuery: true, NoIndex: true, Cacheable: true,
		CreatedBy: "key", Title: "=HYPERLINK(\"x\")\n\"é\"", Tags: []string{"a", "ü b"}, Version: 9,
	}
	return map[string]link.Link{
		"full": full, "tombstone": full.Tombstone(now.Add(2 * time.Hour)),
		"bare": {
			ID: link.ID{9}, Key: link.Key{Code: "abc"}, Destination: "https://example.com/", Workspace: "default",
			Status: link.Active, Safety: link.Clean, Redirect: 302, Created: now, Updated: now, Version: 1,
		},
	}
}

// A link goes through JSON and comes back the same.
func TestJSONLosesNothing(t *testing.T) {
	for name, want := range links() {
		text, err := json.Marshal(exchange.RecordOf(want))
		if err != nil {
			t.Fatal(err)
		}
		r, err := exchange.NewJSON(strings.NewReader(string(text)), 0)
		if err != nil {
			t.Fatal(err)
		}
		row, err := r.Next()
		if err != nil || row.Err != nil || !row.Record.IsWhole() {
			t.Fatalf("%s: %v %v", name, err, row.Err)
		}
		got, err := row.Record.Link()
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
}

// Every sign that has a spreadsheet run a cell, or that it takes off the front of one, is kept
// quiet, and only such cells are.
func TestHarmlessKeepsEveryFormulaQuiet(t *testing.T) {
	for cell, want := range map[string]string{
		"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(1)": "'@SUM(1)", "\t=1+1": "'\t'=1+1", "\r=1+1": "'\r'=1+1",
		"'=1+1": "''=1+1", "'\t": "''\t", "\n": "'\n",
		"＝1": "'＝1", "＋1": "'＋1", "－1": "'－1", "＠1": "'＠1", "﹦1": "'﹦1",
		"x;=1": "x;'=1", "x;;＝1;-2": "x;;'＝1;'-2", "x\t@1": "x\t'@1", "x\n+1": "x\n'+1", "x\r\n-1": "x\r\n'-1", "x|=1": "x|'=1",
		"x; =1": "x;' =1", "x;\u00a0\u200b=1": "x;'\u00a0\u200b=1", `x;"=1`: `x;'"=1`, " =1": "' =1", "\ufeff=1": "'\ufeff=1",
		"x;'=1": "x;''=1", `"=1"`: `'"=1"`,
		"": "", "'": "'", "'tis": "'tis", "a=1": "a=1", "é": "é", "x;y=1": "x;y=1", "x,=1": "x,=1", "https://a.example/@1,-2": "https://a.example/@1,-2", "\xff=1": "\xff=1",
	} {
		if got := exchange.Harmless(cell); got != want {
			t.Errorf("%q became %q, want %q", cell, got, want)
		}
	}
}

// A CSV export is read back, without the apostrophes that keep spreadsheets quiet.
func TestCSVIsReadBack(t *testing.T) {
	for name, want := range links() {
		var text strings.Builder
		w := csv.NewWriter(&text)
		record := exchange.RecordOf(want)
		if err := w.WriteAll([][]string{exchange.Columns(), record.Cells()}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text.String(), "\n=") || strings.Contains(text.String(), ",=") || strings.Contains(text.String(), ",\"=") {
			t.Errorf("%s: a spreadsheet would run a cell of %s", name, text.String())
		}
		r, err := exchange.NewCSV(strings.NewReader(text.String()), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		row, err := r.Next()
		if err != nil || row.Err != nil {
			t.Fatalf("%s: %v %v", name, err, row.Err)
		}
		got, err := row.Record.Link()
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
}

// No text comes back as another, however many apostrophes it begins with.
func TestApostrophesAreGivenBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := links()["bare"]
		want.Title = strings.TrimSpace(rapid.StringMatching(`('{0,3}[=+@a＝﹦"\x{200b} -]{0,2}[a-z';|]{0,3}){1,3}`).Draw(t, "title"))
		record := exchange.RecordOf(want)
		var text strings.Builder
		if err := csv.NewWriter(&text).WriteAll([][]string{exchange.Columns(), record.Cells()}); err != nil {
			t.Fatal(err)
		}
		r, err := exchange.NewCSV(strings.NewReader(text.String()), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		row, err := r.Next()
		if err != nil || row.Err != nil || row.Record.Title != want.Title {
			t.Fatalf("%q became %q: %v %v", want.Title, row.Record.Title, err, row.Err)
		}
	})
}

// What is no link of an export is refused, whatever it says.
func TestRecordsOfNoLink(t *testing.T) {
	good := exchange.RecordOf(links()["bare"])
	for name, change := range map[string]func(*exchange.Record){
		"id": func(r *exchange.Record) { r.ID = "x" }, "status": func(r *exchange.Record) { r.Status = "gone" },
		"safety": func(r *exchange.Record) { r.Safety = "" }, "version": func(r *exchange.Record) { r.Version = 0 },
		"redirect": func(r *exchange.Record) { r.Redirect = 302 + 1<<16 }, "code": func(r *exchange.Record) { r.Code = "a/b" },
		"url": func(r *exchange.Record) { r.LongURL = "" }, "workspace": func(r *exchange.Record) { r.Workspace = "" },
	} {
		r := good
		change(&r)
		if l, err := r.Link(); err == nil {
			t.Errorf("%s: %+v", name, l)
		}
	}
}
