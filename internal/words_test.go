package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// refusal is a phrase that texts for users must not have. docs/glossary.md has the terms.
type refusal struct {
	phrase string // a regular expression; letter case does not matter
	say    string // the term to use
	sample string // a text with the phrase: the control of this test
	except string // where the phrase is right: removed before the search
}

// refusals are precise enough to have no false positives: a single common word is here only where
// no user text needs it.
func refusals() []refusal {
	return []refusal{
		{phrase: `\bwhoever\b`, say: "anyone with …, the caller", sample: "Whoever has the address may read it."},
		{phrase: `\b(no|some)body\b`, say: "no one, someone, or the actor: another process, a moderator", sample: "nobody knows how many"},
		{phrase: `\bwhence\b`, say: "source", sample: "By whom and whence"},
		{phrase: `\banew\b`, say: "again, recreate, reload, rebuild", sample: "the file is made anew"},
		{phrase: `\bof before\b|\bthe (one|link|period|page|secret|server|process|version|release) before\b`, say: "previous", sample: "What is shown is of before."},
		{phrase: `\bany more\b`, say: "no longer", sample: "not shared any more"},
		{phrase: `\bmeanwhile\b`, say: "during …, concurrently", sample: "others changed the link meanwhile"},
		{phrase: `\bask(ed)? again\b|\b(is|are) tried again\b|\btrying again\b`, say: "retry, retrying", sample: "ask again later"},
		{phrase: `\bgo(es)? on\b`, say: "continue, resume", sample: "redirects go on"},
		{phrase: `\bis no\b|\b(is|are) none\b`, say: "invalid, not a, unknown", sample: "is no field of this request", except: `there is no(ne)?\b|is no longer\b`},
		{phrase: `(^|: |; )wants? `, say: "expected", sample: "--limit: want 1 or more"},
		{phrase: `\bwants? (no )?traffic\b`, say: "ready, not ready", sample: "the server wants traffic"},
		{phrase: `\b(is|are|be|was|were) asked\b`, say: "queried, requested, used", sample: "the primary is asked"},
		{phrase: `\bdo(es)? not answer\b|\b(is|are) away\b`, say: "unavailable, does not respond, timed out", sample: "Redis does not answer"},
		{phrase: `\bquestions (of|to|that)\b|\bfailed questions\b`, say: "queries, commands, requests", sample: "Questions to the link store."},
		{phrase: `\b(tell|tells|told)\b`, say: "report, notify, distinguish", sample: "visitors are not told apart"},
		{phrase: `\b(link|key|topic|code|address|folder|file|table|token)(s|es)? (is|are|was|were|can be|could be) made\b|\bmakes? ((a|an|the|some|up to [\d,]+) )?((short|api) )?(link|key|topic|code|address|folder|file|table)|\bmade (with|without|by|since|on)\b`, say: "create, generate", sample: "Make an API key"},
		{phrase: `\b(is|are) over\b`, say: "has expired, has ended", sample: "The time of this link is over."},
		{phrase: `\bby (itself|themselves)\b`, say: "automatically, unexpectedly", sample: "it stopped by itself"},
		{phrase: `\bfor good\b`, say: "permanently", sample: "Delete for good"},
		{phrase: `\bg(ave|ives?|iven) away\b`, say: "generate, lease", sample: "codes that were given away"},
		{phrase: `\b(make|makes|no|wait for) room\b|\broom for\b`, say: "evict, free disk space, full", sample: "There is no room for more."},
		{phrase: `\bbehind (the|this) (object|json|server|service)`, say: "after, outside", sample: "something behind the JSON object"},
		{phrase: `\b(what|that) stands?\b|\bstands above\b|\bas (it|they) stands?\b|\bstands in\b`, say: "effective, active, current", sample: "a ban stands above that"},
		{phrase: `\bsettled?\b`, say: "finalize, apply", sample: "settle days", except: `\b(from|into) settled\b`},
		{phrase: `\bjudg(e|es|ed|ing)\b`, say: "recheck, evaluate", sample: "links are judged again"},
		{phrase: `\bstrangers?\b`, say: "visitors, reporters, untrusted", sample: "what strangers wrote"},
		{phrase: `\blead(s|ing)? (on|to|nowhere|elsewhere|in a circle|there)\b|\bled (on|to|there)\b`, say: "redirects to, points to, destination", sample: "It leads to:"},
		{phrase: `\bswitch(es|ed)? (it|them|links?)? ?(off|on)\b`, say: "disable, enable", sample: "Switch links off"},
		{phrase: `\bslugs?\b`, say: "alias", sample: "this slug is taken", except: `this slug is reserved`},
		{phrase: `\bin clear\b`, say: "unencrypted", sample: "keys travel in clear"},
		{phrase: `\bat the most\b`, say: "at most", sample: "six at the most"},
		{phrase: `\bmends?\b`, say: "fix", sample: "mend the resolver"},
		{phrase: `\blook(s|ed|ing)? (at|for|into)\b`, say: "check, find", sample: "not all were looked at"},
		{phrase: `\bbeside\b`, say: "in, next to, together with", sample: "accounts are beside the links"},
		{phrase: `\bbring(s)? (a backup|it|them|back)\b|\bbrought (in|by|back)\b`, say: "restore, index, source", sample: "bring a backup back"},
		{phrase: `\b(it|ban|bans) (means?|meant)\b`, say: "matches, affects", sample: "links that it meant"},
		{phrase: `\bvisitors? meets?\b`, say: "visitors see", sample: "What visitors meet now."},
		{phrase: `\bwithout a word\b`, say: "silently", sample: "SQLite would drop them without a word"},
		{phrase: `\bone by one\b`, say: "raw clicks", sample: "Show the clicks one by one"},
		{phrase: `\b(add|adds|added) up\b`, say: "sum, finalize", sample: "days are added up"},
		{phrase: `\bnot understood\b|\bpassed over\b`, say: "invalid, skipped", sample: "lines are not understood"},
		{phrase: `\b(is|are) (not )?there( yet| already)?\b`, say: "exists, missing", sample: "the topic is there already"},
		{phrase: `\bcut(s)? off\b`, say: "truncate, close", sample: "its end was cut off"},
		{phrase: `\b(can|could) be no\b`, say: "invalid", sample: "can be no tag"},
		{phrase: `\bsays? so\b`, say: "records it, reports it", sample: "the entry that says so"},
		{phrase: `\b(no|any|every) bound\b|\bbut for\b|\bin all\b`, say: "unlimited; except; total", sample: "clicks in all", except: `\bin all (other|workspaces|answers)\b`},
	}
}

// textsLater are files that still have refused phrases. It only shrinks: a file without one must
// leave it.
func textsLater() []string {
	return []string{
		"../web/src/text/transfer.ts",
	}
}

func TestTextsForUsersHaveNoRefusedPhrase(t *testing.T) {
	list := compiled(t)
	seen, dirty := 0, map[string]bool{}
	for _, text := range userTexts(t, "..") {
		seen++
		for _, f := range list.find(text.says) {
			if dirty[text.file] = true; !slices.Contains(textsLater(), text.file) {
				t.Errorf("%s:%d: %q: say %s instead of %q", text.file, text.line, text.says, f.say, f.found)
			}
		}
	}
	if seen < 3_000 {
		t.Errorf("only %d texts were found", seen)
	}
	for _, file := range textsLater() {
		if !dirty[file] {
			t.Errorf("%s has no refused phrase: remove it from textsLater", file)
		}
	}
}

// The control: every refused phrase is found wherever users read, and what is excepted is not.
func TestAPlantedPhraseIsFound(t *testing.T) {
	list := compiled(t)
	for _, r := range refusals() {
		if !slices.ContainsFunc(list.find(r.sample), func(f finding) bool { return f.say == r.say }) {
			t.Errorf("%q is not refused by %q", r.sample, r.phrase)
		}
	}
	for _, right := range []string{"this slug is reserved", "There is no link at this URL.", "the topic is no longer read", "SELECT at FROM settled"} {
		if found := list.find(right); len(found) != 0 {
			t.Errorf("%q is refused: %v", right, found)
		}
	}
	root := t.TempDir()
	for file, text := range map[string]string{
		"internal/planted/planted.go": "package planted\n\n// A comment may say whoever.\ntype t struct {\n\tF int `json:\"f\" doc:\"Shown to whoever asks.\"`\n}\n\nvar text = \"for whoever\" + \" asks\"\n\nconst name = \"whoever\"\n",
		"internal/web/pages/a.html":   "<p>For {{.Whoever}} <b>and whoever</b> asks</p>\n",
		"web/src/text/en.ts":          "// whoever\nexport const en = { a: 'For whoever asks', b: `To ${whoever} and whoever` }\n",
		"deploy/prometheus/rules.yml": "# whoever\n      summary: \"For whoever asks\"\n",
		"deploy/grafana/curt.json":    "{\n \"title\": \"For whoever asks\",\n \"expr\": \"whoever\"\n}\n",
	} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found := map[string]int{}
	for _, text := range userTexts(t, root) {
		found[filepath.Base(text.file)] += len(list.find(text.says))
	}
	if want := map[string]int{"planted.go": 2, "a.html": 1, "en.ts": 2, "rules.yml": 1, "curt.json": 1}; !reflect.DeepEqual(found, want) {
		t.Errorf("found %v, planted %v", found, want)
	}
}

type (
	wordList []listed
	listed   struct {
		refusal
		phrase, except *regexp.Regexp
	}
	finding struct{ found, say string }
)

func compiled(t *testing.T) (list wordList) {
	t.Helper()
	for _, r := range refusals() {
		l := listed{refusal: r, phrase: regexp.MustCompile("(?i)" + r.phrase)}
		if r.except != "" {
			l.except = regexp.MustCompile("(?i)" + r.except)
		}
		list = append(list, l)
	}
	return list
}

func (w wordList) find(text string) (found []finding) {
	for _, l := range w {
		rest := text
		if l.except != nil {
			rest = l.except.ReplaceAllString(text, "…")
		}
		if m := l.phrase.FindString(rest); m != "" {
			found = append(found, finding{m, l.say})
		}
	}
	return found
}

// userText is a text that users may read: a message, a description, a label.
type userText struct {
	file string
	line int
	says string
}

// userTexts collects texts of two words and more. Single words are names.
func userTexts(t *testing.T, root string) (all []userText) {
	t.Helper()
	for _, folder := range []string{"cmd", "internal", "client"} {
		walk(t, filepath.Join(root, folder), ".go", func(path string, text []byte) { all = append(all, goTexts(t, path, text)...) })
	}
	walk(t, filepath.Join(root, "internal/web/pages"), ".html", func(path string, text []byte) {
		plain := regexp.MustCompile(`(?s)\{\{.*?\}\}|<[^>]*>`).ReplaceAllString(string(text), "\x00")
		all = append(all, lines(path, plain, regexp.MustCompile(`[^\x00]+`))...)
	})
	walk(t, filepath.Join(root, "web/src/text"), ".ts", func(path string, text []byte) {
		plain := regexp.MustCompile(`(?m)^\s*//.*$`).ReplaceAllString(string(text), "")
		plain = regexp.MustCompile(`\$\{[^{}]*\}`).ReplaceAllString(plain, "…")
		all = append(all, lines(path, plain, regexp.MustCompile("'[^'\n]*'|`[^`\n]*`"))...)
	})
	walk(t, filepath.Join(root, "deploy"), ".yml", func(path string, text []byte) {
		all = append(all, lines(path, string(text), regexp.MustCompile(`(summary|description): ".*"`))...)
	})
	walk(t, filepath.Join(root, "deploy"), ".json", func(path string, text []byte) {
		all = append(all, lines(path, string(text), regexp.MustCompile(`"(title|description)": ".*"`))...)
	})
	return all
}

// walk calls f with each file of that kind which is no test and is not only for tests.
func walk(t *testing.T, folder, suffix string, f func(path string, text []byte)) {
	t.Helper()
	if _, err := os.Stat(folder); err != nil {
		return // the control plants a few
	}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasSuffix(path, "test") || strings.HasSuffix(path, "testkit") || strings.HasSuffix(path, "gather")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, suffix) || strings.HasSuffix(path, "_test"+suffix):
			return nil
		}
		text, err := os.ReadFile(path)
		f(path, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func lines(path, text string, phrase *regexp.Regexp) (all []userText) {
	for i, line := range strings.Split(text, "\n") {
		for _, m := range phrase.FindAllString(line, -1) {
			if m = strings.Trim(m, " '`"); strings.Contains(m, " ") {
				all = append(all, userText{path, i + 1, m})
			}
		}
	}
	return all
}

// goTexts are the string literals of a file; of the tags of a field, those that are descriptions.
func goTexts(t *testing.T, path string, text []byte) (all []userText) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	add := func(at token.Pos, says string) {
		if strings.Contains(says, " ") {
			all = append(all, userText{path, files.Position(at).Line, says})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				tag, _ := strconv.Unquote(n.Tag.Value)
				add(n.Tag.Pos(), reflect.StructTag(tag).Get("doc"))
				add(n.Tag.Pos(), reflect.StructTag(tag).Get("help"))
				n.Tag = nil
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				says, _ := strconv.Unquote(n.Value)
				add(n.Pos(), says)
			}
		}
		return true
	})
	return all
}

// refusedNames are words of the earlier vocabulary that exported names must not have, each with the
// term to use. A word is one between capitals: Settle, SettleDays.
func refusedNames() map[string]string {
	return map[string]string{
		"Settle": "Apply, Finalize", "Settled": "Finalized", "Standing": "Effective, Peek", "Stands": "Equivalent, Active", "Stand": "Mount",
		"Again": "Retry, Recheck, Reread", "Told": "Notified, LastMessage", "Tell": "Publish, Notify", "Teller": "Publisher", "Heard": "LastContact",
		"Minted": "Generated", "Unminted": "NonGenerated", "Excuse": "ForgiveOutage", "Promise": "SendWatermark, Watermark", "Desk": "Service",
		"Sift": "Filter", "Edition": "Version", "Bars": "CheckBan", "Stranger": "Unconfigured, Reporter", "Doubt": "Uncertain", "Often": "Prepared",
		"Crowd": "Threshold", "Homesick": "CanReturn", "Aside": "LowPriority", "Pave": "Serve", "Behind": "Staleness, Lag", "Look": "Inspect, Check",
		"Looks": "Checks", "Sight": "Match", "Maker": "Creator", "Makers": "Creators", "Made": "Created", "Make": "Create", "Whoever": "Caller", "Nobody": "Anonymous",
		"Asked": "Requested", "Ask": "Query", "Strange": "Invalid",
		"Keep": "Store, Retain", "Kept": "Retained", "Rest": "Yield, Remaining", "Enter": "BeginWrite", "Known": "Contains", "Place": "Position, Location",
		"Crowded": "Busy",
	}
}

// namesLater is where the exported names stand that still have a refused word, one a line.
const namesLater = "testdata/refused_names.txt"

// Names that have a refused word are listed in a file, so that their number only falls: a new one fails,
// and so does one that is listed and gone.
func TestExportedNamesHaveNoRefusedWord(t *testing.T) {
	text, err := os.ReadFile(namesLater)
	if err != nil {
		t.Fatal(err)
	}
	later := map[string]bool{}
	for name := range strings.FieldsSeq(string(text)) {
		later[name] = true
	}
	seen := 0
	for _, folder := range []string{"internal", "client"} {
		walk(t, filepath.Join("..", folder), ".go", func(path string, text []byte) {
			for name := range exportedNames(t, path, text) {
				seen++
				word, say := refusedWord(name)
				if word != "" && !later[name] {
					t.Errorf("%s: %s: say %s instead of %s", path, name, say, word)
				}
				if word != "" {
					later[name] = false
				}
			}
		})
	}
	for name, left := range later {
		if left {
			t.Errorf("%s is gone: remove it from %s", name, namesLater)
		}
	}
	if seen < 2_000 {
		t.Errorf("only %d exported names were found", seen)
	}
}

func TestAPlantedNameIsFound(t *testing.T) {
	planted := "package planted\n\ntype Store struct{ MadeAt, settled int }\n\nfunc (s *Store) SettleDays() {}\n\ntype Wire struct{ MadeBy string `json:\"made_by\"` }\n\nfunc (s *store) Settle() {}\n\nconst Remake = 1\n\ntype store struct{}\n"
	var found []string
	for name := range exportedNames(t, "planted/planted.go", []byte(planted)) {
		if word, _ := refusedWord(name); word != "" {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	if want := []string{"planted.Store.MadeAt", "planted.Store.SettleDays"}; !slices.Equal(found, want) {
		t.Errorf("found %v, planted %v", found, want)
	}
}

var camelWord = regexp.MustCompile(`[A-Z][a-z0-9]*`)

func refusedWord(name string) (word, say string) {
	_, ident, _ := strings.Cut(name, ".")
	last := strings.ReplaceAll(ident[strings.LastIndexByte(ident, '.')+1:], "LookAlike", "Lookalike") // the signal
	for _, w := range camelWord.FindAllString(last, -1) {
		if say := refusedNames()[w]; say != "" {
			return w, say
		}
	}
	return "", ""
}

// exportedNames are those of a file as others write them: package.Name, package.Type.Member.
func exportedNames(t *testing.T, path string, text []byte) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	pkg := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")
	all := map[string]bool{}
	add := func(of string, idents ...*ast.Ident) {
		for _, i := range idents {
			if i.IsExported() {
				all[pkg+"."+of+i.Name] = true
			}
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add("", d.Name)
			} else if of := receiverName(d.Recv.List[0].Type); ast.IsExported(of) {
				add(of+".", d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					add("", s.Names...)
				case *ast.TypeSpec:
					if add("", s.Name); s.Name.IsExported() {
						namesOf(s.Type, func(idents ...*ast.Ident) { add(s.Name.Name+".", idents...) })
					}
				}
			}
		}
	}
	return all
}

// namesOf are the fields of a struct and the methods of an interface.
func namesOf(of ast.Expr, add func(...*ast.Ident)) {
	var fields *ast.FieldList
	switch of := of.(type) {
	case *ast.StructType:
		fields = of.Fields
	case *ast.InterfaceType:
		fields = of.Methods
	default:
		return
	}
	for _, f := range fields.List {
		if f.Tag == nil || !strings.Contains(f.Tag.Value, `json:"`) { // else the wire names it
			add(f.Names...)
		}
	}
}

func receiverName(of ast.Expr) string {
	for {
		switch r := of.(type) {
		case *ast.StarExpr:
			of = r.X
		case *ast.IndexExpr:
			of = r.X
		case *ast.IndexListExpr:
			of = r.X
		case *ast.Ident:
			return r.Name
		default:
			return fmt.Sprintf("%T", of)
		}
	}
}
