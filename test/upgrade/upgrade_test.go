package upgrade_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"curt/test/internal/curttest"
)

// answers are what a server says about a fixture.
type answers struct {
	Population population        `json:"population"`
	Links      map[string]object `json:"links"`  // by domain/code
	Stats      map[string]object `json:"stats"`  // the same
	Clicks     map[string]object `json:"clicks"` // of the first links
	Visits     map[string]object `json:"visits"`
	Lists      map[string]object `json:"lists"` // codes by query
	Keys       object            `json:"keys"`
	Decisions  map[string]object `json:"decisions"` // of moderators, by path
	Callers    map[string]object `json:"callers"`   // what each key may ask
}

// look asks about everything. Visits come last, because they change what they are about.
func look(t *testing.T, s *curttest.Server, p population) answers {
	t.Helper()
	a := answers{
		Population: p, Links: map[string]object{}, Stats: map[string]object{}, Clicks: map[string]object{},
		Visits: map[string]object{}, Lists: map[string]object{}, Callers: map[string]object{}, Decisions: map[string]object{},
	}
	window := []string{"from=" + p.From.Format(time.RFC3339), "to=" + p.To.Format(time.RFC3339)}
	for i, c := range p.Codes {
		name := c.Domain + "/" + c.Code
		a.Links[name] = asked(t, s, curttest.Key, c.path(""))
		if i >= 60 && i%20 != 0 { // nobody clicked these
			continue
		}
		a.Stats[name] = asked(t, s, curttest.Key, c.path("/stats", append(window, "interval=hour", "top=200",
			"dimensions=country,referrer_host,device,browser,os,language,trigger,utm_source,utm_campaign")...))
		if i < 10 {
			a.Clicks[name] = asked(t, s, curttest.Key, c.path("/clicks", append(window, "limit=1000")...))
		}
	}
	for _, query := range []string{"sort=created_at", "q=number+12", "tag=tag3", "state=expired", "state=exhausted", "q=stra%C3%9Fe", "domain=" + domain, "sort=-clicks&q=shape"} {
		a.Lists[query] = listed(t, s, query)
	}
	for _, path := range []string{"/api/v1/journal?limit=100", "/api/v1/bans", "/api/v1/reviews"} {
		a.Decisions[path] = asked(t, s, curttest.Key, path)
	}
	a.Keys = asked(t, s, curttest.Key, "/api/v1/keys")
	for name, key := range p.Keys {
		a.Callers[name] = object{
			"list": asked(t, s, key, "/api/v1/links")["status"], "keys": asked(t, s, key, "/api/v1/keys")["status"],
			"stats": asked(t, s, key, p.Codes[len(p.Codes)-1].path("/stats"))["status"],
			"other": asked(t, s, key, p.Codes[0].path(""))["status"],
		}
	}
	for _, c := range p.Codes[:60] {
		at := host
		if c.Domain != "" {
			at = c.Domain
		}
		a.Visits[c.Domain+"/"+c.Code] = visit(t, s, at, c.Code+"?q=1", nil)
	}
	return a
}

// asked is the answer to a GET without what the time or the question itself changes.
func asked(t *testing.T, s *curttest.Server, key, path string) object {
	t.Helper()
	status, o := api(t, s, key, http.MethodGet, path, nil)
	if status >= http.StatusBadRequest {
		o = object{"type": o["type"]}
	}
	strip(o)
	return object{"status": float64(status), "answer": o}
}

func strip(v any) {
	switch v := v.(type) {
	case object:
		for _, volatile := range []string{"clicks_24h", "last_updated_at", "complete_until", "complete", "last_used_at", "next_cursor", "walk", "overdue"} {
			delete(v, volatile)
		}
		for _, inner := range v {
			strip(inner)
		}
	case []any:
		for _, inner := range v {
			strip(inner)
		}
	}
}

// listed walks a list to its end and returns its codes.
func listed(t *testing.T, s *curttest.Server, query string) object {
	t.Helper()
	codes, cursor := []any{}, ""
	for {
		status, o := api(t, s, curttest.Key, http.MethodGet, "/api/v1/links?limit=100&"+query+cursor, nil)
		if status == http.StatusServiceUnavailable { // the index is being filled
			time.Sleep(100 * time.Millisecond)
			continue
		}
		links, _ := o["links"].([]any)
		for _, l := range links {
			codes = append(codes, l.(object)["domain"].(string)+"/"+l.(object)["short_code"].(string))
		}
		if cursor = text(o["next_cursor"]); cursor == "" {
			return object{"codes": codes}
		}
		cursor = "&cursor=" + cursor
	}
}

// fixtures are the releases that were kept.
func fixtures(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("testdata/*/expected.json.gz")
	if err != nil || len(found) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	return found
}

func expected(t *testing.T, file string) (a answers) {
	t.Helper()
	text, err := io.ReadAll(readZipped(t, file))
	if err != nil {
		t.Fatal(err)
	}
	// Since 0.2 a link before its start is unknown to visitors (docs/decisions/0043).
	text = bytes.ReplaceAll(text, []byte("/problems/not-yet-active"), []byte("/problems/not-found"))
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	if len(a.Links) < 250 || len(a.Callers) < 6 {
		t.Fatalf("%s says too little: %d links, %d keys", file, len(a.Links), len(a.Callers))
	}
	return a
}

// TestEveryRelease starts the server on the folder of each release: it answers as that
// release did. It may say more.
func TestEveryRelease(t *testing.T) {
	for _, file := range fixtures(t) {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			unpackFolder(t, filepath.Join(filepath.Dir(file), "data.tar.gz"), data)
			s := start(t, data)
			compare(t, s, expected(t, file))
			stop(t, s)
		})
	}
}

func compare(t *testing.T, s *curttest.Server, want answers) {
	t.Helper()
	for query, list := range want.Lists {
		eventually(t, "the list "+query, func() bool { return missing("", plain(t, list), plain(t, listed(t, s, query))) == nil })
	}
	got := look(t, s, want.Population)
	if wrong := missing("", plain(t, want), plain(t, got)); len(wrong) > 0 {
		t.Errorf("%d answers are not what they were, such as\n%s", len(wrong), strings.Join(wrong[:min(len(wrong), 10)], "\n"))
	}
}

// plain is a value as JSON has it.
func plain(t *testing.T, v any) (p any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// missing says where got lacks what want has. Further fields of objects are allowed.
func missing(at string, want, got any) (wrong []string) {
	switch want := want.(type) {
	case object:
		other, ok := got.(object)
		if !ok {
			return []string{fmt.Sprintf("%s: %v instead of an object", at, got)}
		}
		for name, value := range want {
			wrong = append(wrong, missing(at+"."+name, value, other[name])...)
		}
		return wrong
	case []any:
		other, ok := got.([]any)
		if !ok || len(other) != len(want) {
			return []string{fmt.Sprintf("%s: %d entries are wanted, this is %v", at, len(want), got)}
		}
		for i := range want {
			wrong = append(wrong, missing(fmt.Sprintf("%s[%d]", at, i), want[i], other[i])...)
		}
		return wrong
	}
	if want != got {
		wrong = append(wrong, fmt.Sprintf("%s: %v, and was %v", at, got, want))
	}
	return wrong
}

// TestADifferenceIsFound is the control of the comparison: one digit of one answer.
func TestADifferenceIsFound(t *testing.T) {
	want := expected(t, fixtures(t)[0])
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"total_clicks":`, `"version":`, `"long_url":"https://example.com/`, `"status":41`, `"codes":["/`} {
		at := strings.Index(string(text), part) + len(part)
		changed := append([]byte{}, text...)
		if changed[at]++; changed[at] > '9' && changed[at] < 'A' {
			changed[at] = '0'
		}
		var other any
		if err := json.Unmarshal(changed, &other); err != nil {
			t.Fatal(err)
		}
		if len(missing("", plain(t, want), other)) == 0 {
			t.Errorf("a change behind %s is not found", part)
		}
	}
}

// databases are the files that migrations change.
func databases() []string { return []string{"curt.db", "clicks.db", "search.db"} }

// TestANewerSchema: a release that disappoints is taken back by starting the one before.
// So this server works, and answers the same, on a schema to which a later release has
// added what a later release may add.
func TestANewerSchema(t *testing.T) {
	t.Parallel()
	files := fixtures(t)
	file, data := files[len(files)-1], t.TempDir()
	unpackFolder(t, filepath.Join(filepath.Dir(file), "data.tar.gz"), data)
	stop(t, start(t, data)) // up to the schema of this server
	for _, name := range databases() {
		execute(t, filepath.Join(data, name),
			`INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)`,
			`CREATE TABLE of_later (n INTEGER PRIMARY KEY) STRICT`)
		for _, table := range tables(t, filepath.Join(data, name)) {
			execute(t, filepath.Join(data, name), `ALTER TABLE `+table+` ADD COLUMN of_later TEXT NOT NULL DEFAULT 'x'`)
		}
	}
	s := start(t, data)
	compare(t, s, expected(t, file))
	l := must(t, s, http.MethodPost, "/api/v1/links", object{"long_url": "https://example.com/new"})
	if met := visit(t, s, host, text(l["short_code"]), nil); met["Location"] != "https://example.com/new" {
		t.Errorf("a new link leads to %v", met)
	}
	must(t, s, http.MethodPost, "/api/v1/keys", object{"name": "new", "scopes": []string{"admin"}})
	stop(t, s)
}

// TestASchemaThatIsNotForThisServer: a later release has changed the file in a way that
// must not be met; the start ends with one line and changes nothing.
func TestASchemaThatIsNotForThisServer(t *testing.T) {
	t.Parallel()
	for _, name := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			stop(t, start(t, data))
			execute(t, filepath.Join(data, name), `PRAGMA user_version = 999`)
			s, err := curttest.Launch(t, curttest.Options{Data: data})
			if err == nil || s.ExitCode() != 1 {
				t.Fatalf("the start ended with %v", err)
			}
			last := s.Log()[strings.LastIndex(strings.TrimSuffix(s.Log(), "\n"), "\n")+1:]
			for _, part := range []string{name, "newer curt", "999", "restore a backup"} {
				if !strings.Contains(last, part) {
					t.Errorf("no %q in %q", part, last)
				}
			}
		})
	}
}

func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func execute(t *testing.T, path string, statements ...string) {
	t.Helper()
	db := open(t, path)
	defer func() { _ = db.Close() }()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// tables are those of curt, without goose's.
func tables(t *testing.T, path string) (names []string) {
	t.Helper()
	db := open(t, path)
	defer func() { _ = db.Close() }()
	rows, err := db.QueryContext(t.Context(), `SELECT name FROM sqlite_schema WHERE type = 'table'`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(names, func(n string) bool {
		return n == "of_later" || strings.HasPrefix(n, "goose_") || strings.HasPrefix(n, "sqlite_")
	})
}
