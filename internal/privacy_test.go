package internal_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"curt/internal/clicks"
	"curt/internal/clicks/clicklog"
)

// TestEveryStoredFieldIsOnThePage compares docs/privacy.md with what is stored.
func TestEveryStoredFieldIsOnThePage(t *testing.T) {
	text, err := os.ReadFile("../docs/privacy.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(string(text), -1) {
		named[m[1]] = true
	}
	fields := 0
	want := func(where, name string) {
		fields++
		if !named[name] {
			t.Errorf("docs/privacy.md says nothing of %s of %s", name, where)
		}
	}
	for field := range reflect.TypeFor[clicks.EventID]().Fields() {
		want("a click", field.Name)
	}
	for field := range reflect.TypeFor[clicklog.Event]().Fields() {
		if field.Name != "ID" {
			want("a click", field.Name)
		}
	}
	var proto []byte
	for _, name := range []string{"../api/clicks.proto", "../api/links.proto"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		proto = append(proto, text...)
	}
	for _, m := range regexp.MustCompile(`(?m)^  (?:fixed64|uint64|int64|bool|string|bytes|Outcome) (\w+) = \d+;`).FindAllStringSubmatch(string(proto), -1) {
		want("a record of Kafka", m[1])
	}
	for _, pattern := range []string{"backend/sqlite/migrations/*/*.sql", "backend/sqlite/*/migrations/*/*.sql", "backend/clickhouse/*/migrations/*.sql"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v %v", pattern, files, err)
		}
		for _, name := range files {
			for _, column := range columns(t, name) {
				want(name, column)
			}
		}
	}
	if fields < 200 {
		t.Errorf("%d fields: the test reads too little", fields)
	}
}

// columns returns those of the tables that a migration makes or changes.
func columns(t *testing.T, file string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	schema := regexp.MustCompile(`--.*`).ReplaceAllString(string(text), "")
	for _, table := range regexp.MustCompile(`(?s)CREATE TABLE [^(]*\(\n(.*?)\n\)`).FindAllStringSubmatch(schema, -1) {
		for line := range strings.Lines(table[1]) {
			if m := regexp.MustCompile(`^    ([a-z_]+)\s+\S`).FindStringSubmatch(line); m != nil {
				names = append(names, m[1])
			}
		}
	}
	for _, m := range regexp.MustCompile(`ADD COLUMN (\w+)`).FindAllStringSubmatch(schema, -1) {
		names = append(names, m[1])
	}
	return names
}
