package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt/internal/cli"
)

// finding is a line of doctor --json.
type finding struct{ Check, Level, Text, Advice string }

// examine runs doctor on a folder and returns its exit code and what it found.
func examine(t *testing.T, folder string, args ...string) (int, []finding) {
	t.Helper()
	all := []string{"doctor", "--json", "--listen=127.0.0.1:0", "--admin-listen=", "--click-log-max=128MiB", "--data=" + folder}
	code, out, errs := curt(t.Context(), append(all, args...)...)
	if !strings.Contains(errs, "failures") {
		t.Fatalf("exit %d: %s", code, errs)
	}
	var found []finding
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		var f finding
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		found = append(found, f)
	}
	return code, found
}

// has reports whether a check found something with these words at a level.
func has(found []finding, check, level, words string) bool {
	for _, f := range found {
		if f.Check == check && f.Level == level && strings.Contains(f.Text, words) {
			return level == "ok" || f.Advice != ""
		}
	}
	return false
}

// change runs statements on a database of the folder.
func change(t *testing.T, file string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1) // a pragma is its connection's
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// overwrite puts text into a file.
func overwrite(t *testing.T, file string, at int64, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt([]byte(text), at)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// segment returns the click log's only segment.
func segment(t *testing.T, folder string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "clicks", "*.clicks"))
	if err != nil || len(names) != 1 {
		t.Fatalf("%v %v", names, err)
	}
	return names[0]
}

// damages are ways to hurt a folder, with the check that must notice.
func damages() []damage {
	curtDB := func(statements ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { change(t, filepath.Join(dir, "curt.db"), statements...) }
	}
	clicksDB := func(statements ...string) func(*testing.T, string) {
		return func(t *testing.T, dir string) { change(t, filepath.Join(dir, "clicks.db"), statements...) }
	}
	mode := func(name string, mode os.FileMode) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	gone := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	year := int64(365)
	day := time.Now().Unix() / 86400
	return []damage{
		{"pages of zeros", "curt.db", "failure", "", nil, func(t *testing.T, dir string) {
			overwrite(t, filepath.Join(dir, "curt.db"), 4096, strings.Repeat("\x00", 5*4096))
		}},
		{"no database at all", "curt.db", "failure", "", nil, func(t *testing.T, dir string) {
			overwrite(t, filepath.Join(dir, "curt.db"), 0, "this is no database")
		}},
		{"curt.db gone", "curt.db", "failure", "missing", nil, gone("curt.db")},
		{"a state file of something else", "curt.db.state", "warning", "damaged", nil, func(t *testing.T, dir string) {
			overwrite(t, filepath.Join(dir, "curt.db.state"), 0, strings.Repeat("nothing\n", 1024))
		}},
		{"leases of before", "leases", "warning", "older", nil, curtDB("UPDATE leases SET next = next - 1")},
		{"a folder on which no server starts", "settings", "failure", "its links are missing", nil, gone("curt.db")},
		{"an index that lacks rows", "curt.db", "failure", "index", []string{"--all"}, curtDB("PRAGMA writable_schema = 1",
			"UPDATE sqlite_schema SET sql = replace(sql, 'WHERE expires <> 0 AND', 'WHERE') WHERE name = 'links_by_expiry'")},
		{"a changed row", "links", "failure", "damaged", nil, curtDB("UPDATE links SET destination = 'https://evil.example/' WHERE code = 'alias-3'")},
		{"another time of creation", "links", "failure", "damaged", nil, curtDB("UPDATE links SET created = created + 1 WHERE code = 'alias-3'")},
		{"another id", "links", "failure", "damaged", nil, curtDB("UPDATE links SET id = randomblob(16) WHERE code = 'alias-3'")},
		{"an alias gone", "links", "failure", "cannot be found", nil, curtDB("DELETE FROM aliases WHERE code = 'alias-3'")},
		{"a changed entry", "decisions", "failure", "hash of entry 1", nil, curtDB("UPDATE journal SET safety = 1 WHERE sequence = 1")},
		{"an entry gone", "decisions", "failure", "number of entry 1", nil, curtDB("DELETE FROM journal WHERE sequence = 1")},
		{"another reason", "decisions", "failure", "reason of entry 2", nil, curtDB("UPDATE journal SET reason = 'none' WHERE sequence = 2")},
		{"the journal gone", "decisions", "failure", "2 links are blocked or flagged", nil, curtDB("DELETE FROM journal", "DELETE FROM journal_progress")},
		{"the journal emptied", "decisions", "failure", "applied entries 1 to 2 are missing", nil, curtDB("DELETE FROM journal")},
		{"the journal's end cut off", "decisions", "failure", "applied entries 2 to 2 are missing", nil, curtDB("DELETE FROM journal WHERE sequence = 2")},
		{"a reason taken away", "decisions", "failure", "texts of entry 1", nil, curtDB("UPDATE journal SET reason = '', reason_salt = x'' WHERE sequence = 1")},
		{"a journal of a later time", "decisions", "warning", "do not match the journal yet", nil, curtDB("DELETE FROM journal WHERE sequence = 2", "UPDATE journal_progress SET progress = '{}'")},
		{"leases of a backup", "leases", "failure", "length 7", nil, curtDB("UPDATE leases SET next = 0")},
		{"a key of tomorrow", "visitor keys", "failure", "in the future", nil, curtDB(fmt.Sprintf("INSERT INTO day_keys VALUES (%d, x'00')", day+year))},
		{"a key of last year", "visitor keys", "warning", "was not deleted", nil, curtDB(fmt.Sprintf("INSERT INTO day_keys VALUES (%d, x'00')", day-year))},
		{"a link of tomorrow", "clock", "failure", "a link was recorded", nil, curtDB(fmt.Sprintf("UPDATE links SET updated = %d", (day+year)*86_400_000))},

		{"clicks.db is no database", "clicks.db", "failure", "", nil, func(t *testing.T, dir string) {
			overwrite(t, filepath.Join(dir, "clicks.db"), 0, "this is no database")
		}},
		{"clicks.db gone", "clicks.db", "failure", "missing", nil, gone("clicks.db")},
		{"a click too many", "statistics", "failure", "differ", nil, clicksDB("UPDATE rollups SET clicks = clicks + 1 WHERE id & 127 = 0 AND clicks > 4")},
		{"a day gone", "statistics", "failure", "differ", nil, clicksDB("DELETE FROM rollups WHERE id & 127 = 0 AND clicks > 4")},
		{"counted twice", "statistics", "failure", "differ", nil, clicksDB("UPDATE state SET segment = 0, place = 0")},
		{"a wrong total", "totals", "failure", "sum", []string{"--all"}, clicksDB("UPDATE links SET clicks = clicks + 1 WHERE code = 'alias-3'")},
		{"ahead of the log", "click log", "failure", "from different times", nil, clicksDB("UPDATE state SET place = place + 10000")},

		{"a flipped byte", "click log", "failure", "checksum", nil, func(t *testing.T, dir string) {
			text, err := os.ReadFile(segment(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			overwrite(t, segment(t, dir), int64(len(text)), string(text)) // behind what is whole
			overwrite(t, segment(t, dir), int64(len(text)+200), "\xff\xff")
		}},
		{"a flipped byte at the end", "click log", "failure", "checksum", nil, func(t *testing.T, dir string) {
			text, err := os.ReadFile(segment(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			overwrite(t, segment(t, dir), int64(len(text)-1), string([]byte{text[len(text)-1] ^ 1}))
		}},
		{"a log that lost its end", "click log", "failure", "truncated", nil, func(t *testing.T, dir string) {
			text, err := os.ReadFile(segment(t, dir))
			if err == nil {
				err = os.WriteFile(segment(t, dir), text[:len(text)-1], 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"zeros at its beginning", "click log", "failure", "not the start of a block", nil, func(t *testing.T, dir string) {
			overwrite(t, segment(t, dir), 0, strings.Repeat("\x00", 64))
		}},
		{"a log of zeros", "click log", "failure", "unreadable", nil, func(t *testing.T, dir string) {
			text, err := os.ReadFile(segment(t, dir))
			if err == nil {
				err = os.WriteFile(segment(t, dir), make([]byte, len(text)), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"a torn end", "click log", "warning", "torn", nil, func(t *testing.T, dir string) {
			f, err := os.OpenFile(segment(t, dir), os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteString("CURTCLK2")
				err = errors.Join(err, f.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"the log gone", "click log", "warning", "missing", nil, func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "clicks")); err != nil {
				t.Fatal(err)
			}
		}},
		{"search.db is no database", "search.db", "failure", "", nil, func(t *testing.T, dir string) {
			overwrite(t, filepath.Join(dir, "search.db"), 0, "this is no database")
		}},

		{"no key", "admin key", "warning", "the next start generates a key", nil, gone("admin.key")},
		{"an open key", "permissions", "failure", "admin.key", nil, mode("admin.key", 0o644)},
		{"an open database", "permissions", "warning", "curt.db", nil, mode("curt.db", 0o640)},
		{"an open folder", "permissions", "failure", "0777", nil, mode(".", 0o777)},
		{"a damaged key", "settings", "failure", "admin key", nil, func(t *testing.T, dir string) {
			overwrite(t, filepath.Join(dir, "admin.key"), 0, "nonsense ")
		}},
		{"a name that is nobody's", "addresses", "failure", "does not resolve", []string{"--base-url=https://curt.invalid"}, nil},
	}
}

type damage struct {
	name, check, level, words string
	args                      []string
	do                        func(t *testing.T, dir string)
}

// A doctor that finds nothing must be able to find something: each way to hurt a folder
// is noticed by the check that it is meant for.
func TestDoctorFindsWhatIsBroken(t *testing.T) {
	healthy := inhabited(t)
	t.Run("healthy", func(t *testing.T) {
		_, found := examine(t, healthy, "--all")
		if !has(found, "curt.db.state", "warning", "was copied") { // which it is
			t.Errorf("a copy is not noticed: %+v", found)
		}
		for _, f := range found {
			if f.Level == "failure" || (f.Level == "warning" && f.Check != "disk" && f.Check != "clock" && f.Check != "addresses" && f.Check != "curt.db.state") {
				t.Errorf("%+v", f)
			}
		}
		for check, words := range map[string]string{
			"curt.db": "intact", "links": "5 including deleted", "leases": "again", "visitor keys": "past", "decisions": "all links match", "clicks.db": "intact", "totals": "sum",
			"click log": "31 clicks", "statistics": "6 days of links", "search.db": "intact", "permissions": "private", "data folder": "no server", "write-ahead log": "no confirmed transaction",
		} {
			if !has(found, check, "ok", words) {
				t.Errorf("%s is not said to be well: %+v", check, found)
			}
		}
	})
	for _, d := range append(damages(), schemas()...) {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			copied(t, dir, healthy)
			if d.do != nil {
				d.do(t, dir)
			}
			code, found := examine(t, dir, d.args...)
			if !has(found, d.check, d.level, d.words) {
				t.Errorf("not noticed: %+v", found)
			}
			if d.level == "failure" && code != 2 || code == 0 {
				t.Errorf("exit %d", code)
			}
		})
	}
}

func TestDoctorFindsListedLinksAndBadLists(t *testing.T) {
	dir, list := inhabited(t), filepath.Join(t.TempDir(), "bad.txt")
	for text, want := range map[string]finding{
		"host-1.example\n": {Check: "blocklists", Level: "warning", Text: "1 links point"},
		"none.example\n":   {Check: "blocklists", Level: "ok", Text: "no link"},
		"<html>\n":         {Check: "settings", Level: "failure", Text: "CURT_BLOCKLISTS"},
	} {
		if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, found := examine(t, dir, "--blocklists="+list); !has(found, want.Check, want.Level, want.Text) {
			t.Errorf("%q: %+v", text, found)
		}
	}
}

func TestDoctorWithoutAFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	code, found := examine(t, missing)
	if code != 2 || !has(found, "data folder", "failure", missing) {
		t.Errorf("exit %d: %+v", code, found)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("the folder was made")
	}
}

// Beside a running server nothing is disturbed, and the address is tried.
func TestDoctorBesideAServer(t *testing.T) {
	address, folder := serving(t)
	live(t, address, folder)
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler()) // with a certificate that nobody trusts
	defer secure.Close()
	for base, want := range map[string]finding{
		address:    {Level: "ok", Text: "served by curt"},
		other.URL:  {Level: "warning", Text: "not from curt"},
		secure.URL: {Level: "failure", Text: "browsers reject"},
	} {
		_, found := examine(t, folder, "--base-url="+base)
		if !has(found, "addresses", want.Level, want.Text) {
			t.Errorf("%s: %+v", base, found)
		}
		if !has(found, "data folder", "ok", "a server is running") || !has(found, "statistics", "ok", "") || !has(found, "links", "ok", "") {
			t.Errorf("beside the server: %+v", found)
		}
	}
}

// What a start makes again is no damage, unless a server runs that believes it to be there.
func TestDoctorAboutMissingFilesOfAServer(t *testing.T) {
	_, folder := serving(t)
	for _, name := range []string{"clicks.db", "search.db"} {
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
		if _, found := examine(t, folder); !has(found, name, "failure", "the running server") {
			t.Errorf("%s: %+v", name, found)
		}
	}
	fresh := t.TempDir()
	if _, found := examine(t, fresh); has(found, "clicks.db", "failure", "") || has(found, "admin key", "warning", "") {
		t.Errorf("an empty folder: %+v", found)
	}
}

func TestDoctorStopsWhenAsked(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, _ := curt(ctx, "doctor", "--data="+t.TempDir()); code != cli.ExitInterrupted {
		t.Errorf("exit %d", code)
	}
}
