package dashboard_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"curt/internal/exchange"
)

// csvScript runs the dashboard's own file, of which TypeScript takes the types away.
const csvScript = `
const fs = require('fs'), ts = require('../../web/node_modules/typescript');
const code = ts.transpileModule(fs.readFileSync('../../web/src/lib/csv.ts', 'utf8'), {compilerOptions: {module: 'CommonJS', target: 'ES2022'}}).outputText;
const csv = {};
new Function('exports', code)(csv);
const cells = JSON.parse(fs.readFileSync(0, 'utf8'));
console.log(JSON.stringify(cells.map(c => [csv.harmless(c), csv.csvRow([c, 'x'])])));`

// TestTheDashboardQuietsFormulasAsTheServerDoes: no spreadsheet runs a cell of its exports,
// and an import, which reads them as the server's own, has what there was.
func TestTheDashboardQuietsFormulasAsTheServerDoes(t *testing.T) {
	node, err := exec.LookPath("node")
	if _, missing := os.Stat("../../web/node_modules/typescript"); err != nil || missing != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("the dashboard's sources need node and what scripts/web installs: %v, %v", err, missing)
		}
		t.Skipf("no node or no TypeScript: %v, %v", err, missing)
	}
	var cells []string
	parts := []string{"", "'", "''", "x", "=1", "＝1", "﹫1", "-1", ";", "|", "\t", "\n", "\r", " ", "\u00a0", "\u0085", "\u200b", "\ufeff", `"`, ",", "é", "\u2028"}
	for _, a := range parts {
		for _, b := range parts {
			for _, c := range parts {
				cells = append(cells, a+b+c, b+"x"+a+b+c)
			}
		}
	}
	in, err := json.Marshal(cells)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "-e", csvScript)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("run node: %v", err)
	}
	var got [][2]string
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(cells) {
		t.Fatalf("%d answers for %d cells: %v", len(got), len(cells), err)
	}
	for i, cell := range cells {
		quiet := exchange.Harmless(cell)
		if got[i][0] != quiet {
			t.Errorf("%q is %q, want %q", cell, got[i][0], quiet)
		}
		row, err := csv.NewReader(strings.NewReader(got[i][1])).Read()
		if want := strings.ReplaceAll(quiet, "\r\n", "\n"); err != nil || len(row) != 2 || row[0] != want { // as encoding/csv reads ends of lines
			t.Errorf("%q is read as %q, %v, want %q", cell, row, err, want)
		}
	}
}
