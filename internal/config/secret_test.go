package config_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"curt/internal/config"
)

// TestNoSettingShowsASecret puts addresses with secrets into one setting after the other,
// those that are none of an address among them.
func TestNoSettingShowsASecret(t *testing.T) {
	settings, err := config.Settings()
	if err != nil {
		t.Fatal(err)
	}
	fields := reflect.TypeFor[config.Config]()
	for i, s := range settings {
		for _, value := range []string{
			"postgres://curt:hunter2@db.example/links", "postgresql://db.example/links?password=hunter2", "redis://:hunter2/0",
			"clickhouse://curt:hunter2@db.example:9000/x", "kafka://curt:hunter2@a.example,b.example/t", "host=db.example password=hunter2",
			"postgres://curt:hunt@hunter2@db.example/links", "postgres://curt:hunt,hunter2@db.example/links",
		} {
			f := config.Flags{}
			field := reflect.ValueOf(&f.Config).Elem().Field(i)
			switch fields.Field(i).Type.Kind() {
			case reflect.String:
				field.SetString(value)
			case reflect.Slice:
				field.Set(reflect.ValueOf(append(strings.Split(value, ","), "postgres://x:hunter2@other.example/links")))
			default:
				continue // no text fits in
			}
			text, err := f.TOML()
			if err != nil || strings.Contains(text, "hunter2") {
				t.Errorf("%s=%s is printed: %v\n%s", s.Variable, value, err, lineWith(text, "hunter2"))
			}
			for _, err := range f.Validate() {
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%s=%s: %v", s.Variable, value, err)
				}
			}
		}
	}
}

func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return line
		}
	}
	return ""
}

func TestPrintedListsShowNoPassword(t *testing.T) {
	f := config.Flags{}
	f.LinksReplicas = []string{"postgres://curt:hunter2@a.example/links", "postgres://b.example/links"}
	f.Domains = []string{"go.example", "to.example"}
	text, err := f.TOML()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"\n# links_replicas = [\"postgres://***@a.example/links\", \"postgres://b.example/links\"] #", "\ndomains = [\"go.example\", \"to.example\"] #",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("not printed: %s\n%s", line, text)
		}
	}
}

// TestAPasswordThatEndsEarlyIsRefused: what is left of it would be a host that is looked up.
func TestAPasswordThatEndsEarlyIsRefused(t *testing.T) {
	for _, c := range []struct {
		setting, value string
		refused        bool
	}{
		{"links", "postgres://curt:hunt@er2@db.example/links", true},
		{"links", "postgres://curt:hunt/er2@db.example/links", true},
		{"links", "postgres://curt:hunt@er/2@db.example/links", true},
		{"links", "postgres://curt:hunter2/links", true},
		{"links", "postgres://curt:hunt%40er%2F2@db.example:5432,[::1]:5433/links?sslmode=disable", false},
		{"links", "postgres:///links?host=/run/postgresql&user=a@b", false},
		{"links", "postgres://curt:hunt?er2@db.example", false},
		{"links-replicas", "postgres://curt:hunt@er2@db.example/links", true},
		{"analytics", "postgres://curt:hunt@er2@db.example/links", true},
		{"analytics", "clickhouse://curt:hunt@er/2@db.example:9000/links", true},
		{"cache", "redis://curt:hunt/er2@db.example/0", true},
		{"cache", "redis://curt:hunt@er2@db.example/0", false},
		{"events", "kafka://curt:hunt/er2@a.example:9092,b.example/topic", true},
		{"events", "kafka://curt:hunt@er2@a.example:9092,b.example:9092/topic?sasl=plain", false},
		{"events", "kafka://curt:hunter2", true},
	} {
		args := []string{"--" + c.setting + "=" + c.value}
		if c.setting != "links" {
			args = append(args, "--links=postgres://db.example/links")
		}
		cfg, err := parse(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		var told []error
		for _, err := range cfg.Validate() {
			if strings.Contains(err.Error(), "er2") || strings.Contains(err.Error(), "hunt") {
				t.Errorf("%s: the password is shown: %v", c.value, err)
			}
			if strings.Contains(err.Error(), "%40") {
				told = append(told, err)
			}
		}
		var e *config.Error
		if got := len(told) == 1 && errors.As(told[0], &e) && e.Setting == "CURT_"+strings.ToUpper(strings.ReplaceAll(c.setting, "-", "_")); got != c.refused {
			t.Errorf("%s=%s: refused %v: %v", c.setting, c.value, got, told)
		}
	}
}
