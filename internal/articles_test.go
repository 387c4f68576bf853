package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestArticlesNameWhatIsThere checks docs/articles.md: every row of a requirement has a status, and
// what it names exists.
func TestArticlesNameWhatIsThere(t *testing.T) {
	text, err := os.ReadFile("../docs/articles.md")
	if err != nil {
		t.Fatal(err)
	}
	p := readProofs(t, "..")
	articles, rows := 0, 0
	for section := range strings.SplitSeq(string(text), "\n## ") {
		found := requirements(section)
		if len(found) == 0 {
			continue
		}
		articles, rows = articles+1, rows+len(found)
		for _, r := range found {
			for _, wrong := range p.check(r) {
				t.Errorf("%q: %s", r[0], wrong)
			}
		}
	}
	if articles != 5 || rows < 200 {
		t.Errorf("found %d rows of %d articles: the page or this test says too little", rows, articles)
	}
}

// The control: a row that is right passes, and each kind of mistake is found.
func TestWrongRowsOfArticlesAreFound(t *testing.T) {
	p := readProofs(t, "..")
	for _, row := range []string{
		"`internal TestWrongRowsOfArticlesAreFound`, `make test` | works",
		"`curt links list`, `curt qr`, `CURT_LINKS` | works",
		"[0057](decisions/0057-announced-l1-instead-of-hot-key-promotion.md) | other",
		"`internal TestNotWritten` | planned: a test",
		"`scripts/bench` | works",
		"– | not done",
	} {
		for _, wrong := range p.check(rowOf(t, row)) {
			t.Errorf("%s: %s", row, wrong)
		}
	}
	for _, row := range []string{
		"`internal TestNotWritten` | works",
		"`internal/nowhere TestWrongRowsOfArticlesAreFound` | works",
		"`make nothing` | works",
		"`curt links nothing` | works",
		"`curt qr list` | works",
		"`CURT_NOTHING` | works",
		"`scripts/nothing` | works",
		"`some words` | works",
		"[0057](decisions/0057-nothing.md) | other",
		"`make test` | other",
		"`internal TestWrongRowsOfArticlesAreFound` | planned: a test",
		"– | planned",
		"– | works",
		"`make test` | ",
		"`make test` | perhaps",
	} {
		if len(p.check(rowOf(t, row))) == 0 {
			t.Errorf("nothing is wrong with %s", row)
		}
	}
}

func rowOf(t *testing.T, end string) [4]string {
	t.Helper()
	rows := requirements("| requirement | in curt | shown by | status |\n|---|---|---|---|\n| a | b | " + end + " |\n")
	if len(rows) != 1 {
		t.Fatalf("%q is not a row", end)
	}
	return rows[0]
}

// requirements returns the rows of the table of an article: requirement, how, proof, status.
func requirements(section string) (rows [][4]string) {
	_, table, ok := strings.Cut(section, "| requirement | in curt | shown by | status |\n|---|---|---|---|\n")
	if !ok {
		return nil
	}
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		var row [4]string // a row with fewer cells has no status
		copy(row[:], strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | "))
		for i, cell := range row {
			row[i] = strings.TrimSpace(cell)
		}
		rows = append(rows, row)
	}
	return rows
}

// proofs is what a row may name.
type proofs struct {
	root            string
	tests, commands map[string]bool // "internal TestX"; "links list"
	makefile, pages string          // the targets; the settings
}

func readProofs(t *testing.T, root string) proofs {
	t.Helper()
	p := proofs{root: root, tests: map[string]bool{}, commands: map[string]bool{}}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	for _, folder := range []string{"internal", "test", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(file, "_test.go") {
				return err
			}
			text, err := os.ReadFile(file)
			for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
				dir, _ := filepath.Rel(root, filepath.Dir(file))
				p.tests[filepath.ToSlash(dir)+" "+m[1]] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for file, text := range map[string]*string{"Makefile": &p.makefile, "docs/configuration.md": &p.pages} {
		read, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		*text = string(read)
	}
	main, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "cmd/curt/main.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	trees := map[string]*ast.StructType{}
	ast.Inspect(main, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			trees[spec.Name.Name], _ = spec.Type.(*ast.StructType)
		}
		return true
	})
	addCommands(p.commands, trees, "commands", "")
	if len(p.tests) < 1000 || len(p.commands) < 40 {
		t.Fatalf("found %d tests and %d commands", len(p.tests), len(p.commands))
	}
	return p
}

// addCommands adds the commands of a tree of cmd/curt, as their users type them.
func addCommands(all map[string]bool, trees map[string]*ast.StructType, tree, path string) {
	for _, f := range trees[tree].Fields.List {
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
		if _, ok := tag.Lookup("cmd"); !ok {
			continue
		}
		name := tag.Get("name")
		if name == "" {
			name = strings.ToLower(f.Names[0].Name)
		}
		name = strings.TrimSpace(path + " " + name)
		all[name] = true
		if below, ok := f.Type.(*ast.Ident); ok && trees[below.Name] != nil {
			addCommands(all, trees, below.Name, name)
		}
	}
}

// check returns what is wrong with a row.
func (p proofs) check(row [4]string) (wrong []string) {
	shown, status := row[2], row[3]
	state, missing, _ := strings.Cut(status, ": ")
	planned := state == "planned"
	names := 0
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(shown, -1) {
		names++
		_, test, isTest := strings.Cut(m[1], " Test")
		exists := p.exists(m[1])
		switch {
		case planned && isTest && exists:
			wrong = append(wrong, "Test"+test+" exists: say works, or leave it out")
		case !planned && !exists:
			wrong = append(wrong, m[1]+" does not exist")
		}
	}
	decisions := regexp.MustCompile(`\]\((decisions/\d{4}-[^)]+)\)`).FindAllStringSubmatch(shown, -1)
	for _, m := range decisions {
		if _, err := os.Stat(filepath.Join(p.root, "docs", m[1])); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	switch {
	case state == "works" && names+len(decisions) == 0:
		wrong = append(wrong, "works, and nothing shows it")
	case state == "other" && len(decisions) == 0:
		wrong = append(wrong, "no decision says why")
	case planned && missing == "":
		wrong = append(wrong, "it does not say what is missing")
	case !regexp.MustCompile(`^(works|other|not done|planned: .+)$`).MatchString(status):
		wrong = append(wrong, fmt.Sprintf("the status is %q", status))
	}
	return wrong
}

// exists reports whether what a code span names exists.
func (p proofs) exists(name string) bool {
	first, rest, _ := strings.Cut(name, " ")
	switch {
	case strings.HasPrefix(rest, "Test"), strings.HasPrefix(rest, "Fuzz"):
		return p.tests[name]
	case first == "make":
		return regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(rest) + `:`).MatchString(p.makefile)
	case first == "curt":
		return p.commands[rest]
	case strings.HasPrefix(name, "CURT_"):
		return strings.Contains(p.pages, "`"+name+"`")
	case path.Dir(name) != ".":
		_, err := os.Stat(filepath.Join(p.root, name))
		return err == nil
	}
	return false
}
