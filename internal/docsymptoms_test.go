package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What an operator is told to look for must be there: metrics, alerts, and words of the
// log, which stand in quotation marks.
func TestOperatorsAreToldOfWhatIsThere(t *testing.T) {
	rules, err := os.ReadFile("../deploy/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	code := sources(t)
	page, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	met := map[string]int{}
	for _, kind := range []struct{ name, span, in string }{
		{"metric", `curt_[a-z_]+`, code},
		{"alert", `Curt[A-Z][A-Za-z]+`, string(rules)},
		{"words of the log", `"[^"]+"`, code},
	} {
		for _, m := range regexp.MustCompile("`("+kind.span+")[^`]*`").FindAllStringSubmatch(string(page), -1) {
			met[kind.name]++
			name := strings.Trim(m[1], `"`)
			if !strings.Contains(kind.in, name) && !strings.Contains(kind.in, `"`+strings.TrimPrefix(name, "curt_")+`"`) {
				t.Errorf("docs/operations.md names the %s %s, which nothing has", kind.name, m[1])
			}
		}
	}
	if met["metric"] < 15 || met["alert"] < 8 || met["words of the log"] < 8 {
		t.Errorf("found %v: the document or this test says too little", met)
	}
}

// sources is the text of every Go file that is no test.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range []string{".", "../cmd"} {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
