package internal_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"curt/internal/link"
)

// mostStoreMethods is what a new store of links may owe. It was 61 when keys, leases and accounts
// hung on the same type.
const mostStoreMethods = 16

// mostCode is how many lines of Go the product may have: those of cmd and internal without blanks,
// comments, tests and what only tests import. A change that needs more says here for what: 66,200 are those
// of one table of fields and one way to a link, 4,000 the feed, leases, jobs and created links in Kafka, 450
// countries, 460 announcements of expired links, 950 refused creates as cases, 1,300 lists of moderators, 950
// limits that servers share and keep, 850 healing and stale statistics, 1,100 reservations of aliases, 1,050 a pool of keys
// in both databases, 700 reservations and keys in DynamoDB and readers of its log that end, 2,600 moving a folder, 2,050 moving between stores, 3,100 links in DynamoDB, 1,150 ids in ZooKeeper, the filter of codes in Redis and the comparison of codes, 1,700 queued writes, 700 gaps of replicas and moves to ClickHouse, 520 the
// way back from there and a status that migrates nothing, 130 TLS to ZooKeeper, 290 moves
// that are refused before they begin, and imports that tell what they found, 60 plain words of commands about values and queues, 60 a log
// that names the links which may expire at another time.
const mostCode = 97_400

func TestTheProductStaysSmall(t *testing.T) {
	code := 0
	for _, root := range []string{"../cmd", "."} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (strings.HasSuffix(path, "test") || strings.HasSuffix(path, "testkit")):
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(path)
			for line := range strings.Lines(string(text)) {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
					code++
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if t.Logf("%d lines of code", code); code > mostCode {
		t.Errorf("%d lines of code, want %d at the most", code, mostCode)
	}
}

func TestALinkStoreOwesFewMethods(t *testing.T) {
	owed := reflect.TypeFor[link.Backend]()
	if n := owed.NumMethod(); n > mostStoreMethods {
		t.Errorf("a store of links owes %d methods, want %d at the most:", n, mostStoreMethods)
		for i := range n {
			t.Error(owed.Method(i).Name)
		}
	}
	// Nobody takes the store for more than that: for a driver's own type, or for an interface
	// of methods that link.Backend does not have.
	optional := regexp.MustCompile(`links\.\(([^)]*)`)
	allowed := map[string]bool{"link.ManyGetter": true, "link.Discarder": true, "link.EventLog": true, "interface{ Damaged(": true}
	of := os.DirFS("compose/stores")
	files, err := fs.Glob(of, "*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of the stores: %v", err)
	}
	for _, name := range files {
		text, err := fs.ReadFile(of, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range optional.FindAllStringSubmatch(string(text), -1) {
			if !strings.HasSuffix(name, "_test.go") && !allowed[found[1]] {
				t.Errorf("compose/stores/%s takes links for %s", name, found[1])
			}
		}
	}
}

// limits are those of one package, tests and generated code aside.
type limits struct{ files, lines, fileLines, funcLines, methods, fields, nilTests int }

// limitsOf returns the limits of a package. The server only runs and drains capabilities.
func limitsOf(dir string) limits {
	l := limits{files: 15, lines: 2000, fileLines: 600, funcLines: 60, methods: 25, fields: math.MaxInt, nilTests: math.MaxInt}
	switch dir {
	case "internal/server":
		l.lines, l.fields, l.nilTests = 1200, 12, 10
	case "cmd/curt":
		l.lines = 300
	}
	return l
}

// sizes are those of one package; each is named as in testdata/over_limits.txt.
type sizes struct {
	files, lines, fields, nilTests int
	byFile, byFunc, methods        map[string]int
}

func newSizes() *sizes {
	return &sizes{byFile: map[string]int{}, byFunc: map[string]int{}, methods: map[string]int{}}
}

// add counts a file of the package.
func (s *sizes) add(name string, source []byte) error {
	positions := token.NewFileSet()
	f, err := parser.ParseFile(positions, name, source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil || ast.IsGenerated(f) {
		return err
	}
	n := bytes.Count(source, []byte("\n"))
	s.files++
	s.lines += n
	s.byFile[name] = n
	for node := range ast.Preorder(f) {
		switch node := node.(type) {
		case *ast.FuncDecl:
			of := receiver(node)
			s.byFunc[of+node.Name.Name] = positions.Position(node.End()).Line - positions.Position(node.Pos()).Line + 1
			if of != "" {
				s.methods[strings.TrimSuffix(of, ".")]++
			}
		case *ast.TypeSpec:
			switch of := node.Type.(type) {
			case *ast.InterfaceType:
				s.methods[node.Name.Name] = of.Methods.NumFields()
			case *ast.StructType:
				if node.Name.Name == "Server" {
					s.fields = of.Fields.NumFields()
				}
			}
		case *ast.BinaryExpr:
			if x, y := types.ExprString(node.X), types.ExprString(node.Y); y == "nil" && x != "err" && (node.Op == token.EQL || node.Op == token.NEQ) {
				s.nilTests++
			}
		}
	}
	return nil
}

// over returns what exceeds the limits, by its name.
func (s *sizes) over(dir string, most limits) map[string]int {
	all := map[string]int{}
	note := func(size, limit int, what string) {
		if size > limit {
			all[what+" "+dir] = size
		}
	}
	note(s.files, most.files, "files of")
	note(s.lines, most.lines, "lines of")
	note(s.fields, most.fields, "fields of Server of")
	note(s.nilTests, most.nilTests, "tests for nil of")
	for name, n := range s.byFile {
		note(n, most.fileLines, "lines of "+name+" of")
	}
	for name, n := range s.byFunc {
		note(n, most.funcLines, "lines of func "+name+" of")
	}
	for name, n := range s.methods {
		note(n, most.methods, "methods of "+name+" of")
	}
	return all
}

// overLimits returns what exceeds its limit in the packages below cmd, internal, client and bench of a folder.
func overLimits(root fs.FS) (map[string]int, error) {
	packages := map[string]*sizes{}
	for _, top := range []string{"cmd", "internal", "client", "bench"} {
		err := fs.WalkDir(root, top, func(name string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case d.IsDir() && (strings.HasSuffix(name, "test") || strings.HasSuffix(name, "testkit") || d.Name() == "testdata"):
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			source, err := fs.ReadFile(root, name)
			if err != nil {
				return err
			}
			of := packages[path.Dir(name)]
			if of == nil {
				of = newSizes()
				packages[path.Dir(name)] = of
			}
			return of.add(path.Base(name), source)
		})
		if err != nil {
			return nil, err
		}
	}
	all := map[string]int{}
	for dir, s := range packages {
		maps.Copy(all, s.over(dir, limitsOf(dir)))
	}
	if len(packages) == 0 {
		return nil, errors.New("no packages")
	}
	return all, nil
}

// allowedSizes reads a list of "2624 lines of internal/some/package: reason" lines. It only shrinks.
func allowedSizes(text string) (map[string]int, error) {
	all := map[string]int{}
	for line := range strings.Lines(text) {
		size, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		what, reason, _ := strings.Cut(rest, ": ")
		n, err := strconv.Atoi(size)
		if err != nil || len(reason) < 10 {
			return nil, fmt.Errorf("%q is not a size, what has it, and a reason", line)
		}
		all[what] = n
	}
	return all, nil
}

// grown compares what exceeds a limit with what may.
func grown(over, allowed map[string]int) (wrong []string) {
	for what, n := range over {
		if n > allowed[what] {
			wrong = append(wrong, fmt.Sprintf("%d %s", n, what))
		}
	}
	for what := range allowed {
		if over[what] == 0 {
			wrong = append(wrong, "no longer over its limit, delete the line: "+what)
		}
	}
	slices.Sort(wrong)
	return wrong
}

// TestPackagesHaveOneIdea: a package has few files, a file one path, a function fits a screen.
func TestPackagesHaveOneIdea(t *testing.T) {
	over, err := overLimits(os.DirFS(".."))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/over_limits.txt")
	if err != nil {
		t.Fatal(err)
	}
	allowed, err := allowedSizes(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range grown(over, allowed) {
		t.Error(wrong)
	}
}

// TestLimitsAreHeld plants a violation of each limit, and what is just within it.
func TestLimitsAreHeld(t *testing.T) {
	lines := func(n int) string { return "package x\n" + strings.Repeat("// line\n", n-1) }
	function := func(n int) string { return "package x\nfunc long() {\n" + strings.Repeat("\t_ = 1\n", n-2) + "}\n" }
	methods := func(n int) string {
		text := "package x\n"
		for i := range n {
			text += fmt.Sprintf("func (t *T) m%d() {}\n", i)
		}
		return text
	}
	owed := func(n int) string { return "package x\ntype T interface {\n" + strings.Repeat("\tm()\n", n) + "}\n" }
	several := func(n int, text string) fstest.MapFS {
		all := fstest.MapFS{}
		for i := range n {
			all[fmt.Sprintf("internal/x/f%02d.go", i)] = &fstest.MapFile{Data: []byte(text)}
		}
		return all
	}
	one := func(name, text string) fstest.MapFS { return fstest.MapFS{name: &fstest.MapFile{Data: []byte(text)}} }
	server := "internal/server/server.go"
	fields := func(n int) string {
		return "package server\ntype Server struct {\n" + strings.Repeat("\tf int\n", n) + "}\n"
	}
	nils := func(n int) string { return "package server\nvar (\n" + strings.Repeat("\t_ = s.f == nil\n", n) + ")\n" }
	for what, c := range map[string]struct {
		within, over fstest.MapFS
	}{
		"files of internal/x":                 {several(15, lines(2)), several(16, lines(2))},
		"lines of internal/x":                 {several(5, lines(400)), several(5, lines(401))},
		"lines of a.go of client":             {one("client/a.go", lines(600)), one("client/a.go", lines(601))},
		"lines of func long of bench/cmd/x":   {one("bench/cmd/x/a.go", function(60)), one("bench/cmd/x/a.go", function(61))},
		"methods of T of cmd/x":               {one("cmd/x/a.go", methods(25)), one("cmd/x/a.go", methods(26))},
		"methods of T of internal/x":          {one("internal/x/a.go", owed(25)), one("internal/x/a.go", owed(26))},
		"lines of cmd/curt":                   {one("cmd/curt/main.go", lines(300)), one("cmd/curt/main.go", lines(301))},
		"fields of Server of internal/server": {one(server, fields(12)), one(server, fields(13))},
		"tests for nil of internal/server":    {one(server, nils(10)), one(server, nils(11))},
	} {
		if over, err := overLimits(c.within); err != nil || len(over) > 0 {
			t.Errorf("%s within the limit: %v, %v", what, over, err)
		}
		if over, err := overLimits(c.over); err != nil || len(over) != 1 || over[what] == 0 {
			t.Errorf("%s over the limit: %v, %v", what, over, err)
		}
	}
	for _, aside := range []fstest.MapFS{
		one("internal/x/x_test.go", lines(700)), one("internal/x/xtest/suite.go", lines(700)), one("internal/x/testdata/a.go", lines(700)),
		one("internal/x/a.go", "// Code generated by x. DO NOT EDIT.\n\n"+lines(700)),
	} {
		aside["cmd/x/main.go"] = &fstest.MapFile{Data: []byte("package main\n")}
		if over, err := overLimits(aside); err != nil || len(over) > 0 {
			t.Errorf("tests and generated code: %v, %v", over, err)
		}
	}
	allowed, err := allowedSizes("700 lines of a.go of client: one table of texts\n")
	if err != nil {
		t.Fatal(err)
	}
	for size, wrong := range map[int]int{700: 0, 701: 1, 0: 1} {
		over := map[string]int{"lines of a.go of client": size}
		if got := grown(over, allowed); len(got) != wrong {
			t.Errorf("%d lines where 700 are allowed: %v", size, got)
		}
	}
	if _, err := allowedSizes("700 lines of a.go of client\n"); err == nil {
		t.Error("a size without a reason is allowed")
	}
}
