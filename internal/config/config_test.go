package config_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"curt/internal/config"
)

// parse reads arguments as curt serve does.
func parse(t *testing.T, args ...string) (config.Config, error) {
	t.Helper()
	var c config.Config
	p, err := kong.New(&c, kong.Exit(func(int) { t.Fatal("asked to exit") }))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Parse(args)
	return c, err
}

// No pool has more keys than there are codes.
func TestAPoolIsNoLargerThanItsCodes(t *testing.T) {
	for size, wrong := range map[string]int{"14776336": 0, "14776337": 1} {
		c, err := parse(t, "--codes=pool", "--code-length=4", "--pool-size="+size)
		if err != nil {
			t.Fatal(err)
		}
		if errs := c.Validate(); len(errs) != wrong {
			t.Errorf("%s: %v", size, errs)
		}
	}
}

func TestDefaultsAreValid(t *testing.T) {
	c, err := parse(t)
	if err != nil {
		t.Fatal(err)
	}
	if errs := c.Validate(); len(errs) > 0 {
		t.Fatal(errs)
	}
	if c.ClickLogMax != 10<<30 || time.Duration(c.RawRetention) != 720*time.Hour || c.Anonymous != nil {
		t.Errorf("defaults: %v %v %v", c.ClickLogMax, c.RawRetention, c.Anonymous)
	}
}

func TestWrongSettingsAreNamedWithTheirValue(t *testing.T) {
	for _, c := range []struct{ args, setting, value string }{
		{"--listen=8080", "CURT_LISTEN", "8080"},
		{"--admin-listen=nowhere", "CURT_ADMIN_LISTEN", "nowhere"},
		{"--base-url=ftp://x", "CURT_BASE_URL", "ftp://x"},
		{"--base-url=https://x/path", "CURT_BASE_URL", "https://x/path"},
		{"--base-url=https://u:p@x", "CURT_BASE_URL", "x"},
		{"--code-length=3", "CURT_CODE_LENGTH", "3"},
		{"--code-length=11", "CURT_CODE_LENGTH", "11"},
		{"--trusted-proxies=10.0.0.0/8,everybody", "CURT_TRUSTED_PROXIES", "everybody"},
		{"--tls-cert=/x.pem", "CURT_TLS_CERT", "/x.pem"},
		{"--hsts=365d", "CURT_HSTS", "8760h"},
		{"--security-contact=security@example.com", "CURT_SECURITY_CONTACT", "example.com"},
		{"--security-contact=http://example.com/", "CURT_SECURITY_CONTACT", "http:"},
		{"--security-contact=https://x/\r\nExpires:", "CURT_SECURITY_CONTACT", "https:"},
		{"--security-contact=mailto:x", "CURT_SECURITY_CONTACT", "mailto:x"},
		{"--drain-limit=-1s", "CURT_DRAIN_LIMIT", "-1s"},
		{"--api-listen=8081", "CURT_API_LISTEN", "8081"},
		{"--lane=yes", "CURT_LANE", "yes"},
		{"--links-connections=5", "CURT_LINKS_CONNECTIONS", "5"},
		{"--links-connections=1001", "CURT_LINKS_CONNECTIONS", "1001"},
		{"--max-connections=0", "CURT_MAX_CONNECTIONS", "0"},
		{"--max-connections=1000001", "CURT_MAX_CONNECTIONS", "1000001"},
		{"--proxy-protocol", "CURT_PROXY_PROTOCOL", "true"},
		{"--fold=off", "CURT_FOLD", "off"},
		{"--click-detail=most", "CURT_CLICK_DETAIL", "most"},
		{"--fold-interval=1ms", "CURT_FOLD_INTERVAL", "1ms"},
		{"--recheck=1ms", "CURT_RECHECK", "1ms"},
		{"--recheck=366d", "CURT_RECHECK", "366d"},
		{"--review-due=8d", "CURT_REVIEW_DUE", "8d"},
		{"--click-log-max=1MiB", "CURT_CLICK_LOG_MAX", "1MiB"},
		{"--cache-size=12", "CURT_CACHE_SIZE", "12"},
		{"--log-level=loud", "CURT_LOG_LEVEL", "loud"},
		{"--links=mysql://table", "CURT_LINKS", "mysql://table"},
		{"--links=dynamodb://table", "CURT_ACCOUNTS", ""},
		{"--cache=redis://:secret@x", "CURT_CACHE", "redis://***@x"},
		{"--cache-warm", "CURT_CACHE_WARM", "true"},
		{"--writes=queued", "CURT_WRITES", "queued"},
		{"--codes=sequence", "CURT_CODES", "sequence"},
		{"--snowflake=hashed", "CURT_SNOWFLAKE", "hashed"},
		{"--pool-keys=random", "CURT_POOL_KEYS", "random"},
		{"--pool-size=9999", "CURT_POOL_SIZE", "9999"},
		{"--pool-size=100000001", "CURT_POOL_SIZE", "100000001"},
		{"--alias-min=2", "CURT_ALIAS_MIN", "2"},
		{"--alias-max=65", "CURT_ALIAS_MAX", "65"},
		{"--alias-reservations=1001", "CURT_ALIAS_RESERVATIONS", "1001"},
		{"--alias-reservations=-1", "CURT_ALIAS_RESERVATIONS", "-1"},
		{"--alias-alphabet=a-Z", "CURT_ALIAS_ALPHABET", "a-Z"},
		{"--alias-alphabet=a.b", "CURT_ALIAS_ALPHABET", "a.b"},
		{"--alias-alphabet=z-a", "CURT_ALIAS_ALPHABET", "z-a"},
		{"--listen=127.0.0.1:99999", "CURT_LISTEN", "99999"},
		{"--listen=:http", "CURT_LISTEN", ":http"},
		{"--admin-listen=127.0.0.1:8080", "CURT_ADMIN_LISTEN", "127.0.0.1:8080"},
		{"--base-url=https://x:0", "CURT_BASE_URL", "https://x:0"},
		{"--domains=a.example,b.example,a.example", "CURT_DOMAINS", "a.example"},
		{"--domains=a.example,,b.example,", "CURT_DOMAINS", "a.example,,b.example"},
		{"--trusted-proxies=10.0.0.0/8,,::1/128", "CURT_TRUSTED_PROXIES", "10.0.0.0/8,,"},
		{"--raw-retention=0d", "CURT_RAW_RETENTION", "0s"},
		{"--raw-retention-of=acme", "CURT_RAW_RETENTION_OF", "acme"},
		{"--raw-retention-of=acme=90d", "CURT_RAW_RETENTION_OF", "acme=90d"},
		{"--cache-size=2TiB", "CURT_CACHE_SIZE", "2TiB"},
		{"--tls-key=/x.pem", "CURT_TLS_KEY", "/x.pem"},
		{"--events=kafka://h/t?password=secret", "CURT_EVENTS", "kafka://h/t?***"},
		{"--events=kafka://u:sec%secret/@h", "CURT_EVENTS", "kafka://***@h"},
		{"--links=a\nb", "CURT_LINKS", "a\nb"},
	} {
		cfg, err := parse(t, c.args)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		errs := cfg.Validate()
		var e *config.Error
		if len(errs) != 1 || !errors.As(errs[0], &e) || e.Setting != c.setting || !strings.Contains(e.Value, c.value) || e.Want == "" {
			t.Errorf("%s: got %v, want one error that names %s and %s", c.args, errs, c.setting, c.value)
		}
		if strings.Contains(errors.Join(errs...).Error(), "secret") {
			t.Errorf("%s: the password is shown", c.args)
		}
	}
}

func TestAnErrorIsOneLine(t *testing.T) {
	for _, value := range []string{"a\nb", "\x1b[2J", "\xff", strings.Repeat("é", 100_000), `"`} {
		e := &config.Error{Setting: "CURT_X", Value: value, Want: "two\nlines", Origin: "from a test"}
		text := e.Error()
		if strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) || len(text) > 500 || !utf8.ValidString(text) {
			t.Errorf("%q is not one short line of text", text)
		}
	}
}

func TestUnitsRoundTrip(t *testing.T) {
	for text, want := range map[string]config.Size{"0": 0, "12": 12, "64MiB": 64 << 20, "10GiB": 10 << 30, "1536KiB": 1536 << 10} {
		var s config.Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want || s.String() != text {
			t.Errorf("%s: %d %v, printed %s", text, s, err, s)
		}
	}
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "90m": 90 * time.Minute, "0d": 0} {
		var d config.Days
		if err := d.UnmarshalText([]byte(text)); err != nil || time.Duration(d) != want {
			t.Errorf("%s: %v %v", text, d, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "-1GiB", "9999999TiB", "1e9", "1 GB", "MiB"} {
		if new(config.Size).UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is taken for a size", text)
		}
	}
	for _, text := range []string{"", "d", "-1d", "-5s", "99999d", "30"} {
		if new(config.Days).UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q is taken for a duration", text)
		}
	}
}

func TestNoSecretIsShown(t *testing.T) {
	for text, want := range map[string]string{
		"postgres://curt:hunter2@db.example:5432/links":  "postgres://***@db.example:5432/links",
		"postgres://db.example/links?password=hunter2":   "postgres://db.example/links?***",
		"host=db.example user=curt password=hunter2":     "host=db.example user=curt password=***",
		"host=db.example PASSWORD = 'hun ter2' dbname=x": "host=db.example PASSWORD = *** dbname=x",
		`password='hun\'ter2' host=x`:                    "password=*** host=x",
		"redis://curt:hunter2":                           "redis://curt:***",
		"redis://:hunter2/0":                             "redis://:***/0",
		"postgres://a.example:5432,b.example:5433/links": "postgres://a.example:5432,b.example:5433/links",
		"postgres://db.example/links?password=hunt@er2":  "postgres://***",
		"postgres://u:hun?te@r2@db.example/links":        "postgres://***",
		"http://[::1]:8080":                              "http://[::1]:8080",
		"sqlite":                                         "sqlite",
	} {
		if got := config.Redact(text); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}

func TestNoErrorShowsAPassword(t *testing.T) {
	const url = "postgres://curt:hunter2@db/links"
	for _, e := range []*config.Error{
		{Setting: "CURT_REPORT_LIMIT", Value: url, Want: strconv.Quote(url) + ": expected a count"},
		{Setting: "CURT_LINKS", Value: "x", Want: "dial " + url + ": no route"},
	} {
		if strings.Contains(e.Error(), "hunter2") || !strings.Contains(e.Error(), "db/links") {
			t.Error(e)
		}
	}
}

func TestPrintedSettingsShowNoPassword(t *testing.T) {
	f := config.Flags{Origins: config.Origins{"CURT_LINKS": {Kind: "env"}}}
	f.Links, f.Accounts, f.BaseURL, f.Limits = "postgres://curt:hunter2@db/links", "host=db password=hunter2", "https://me:hunter2@go.example.com", "free=10/m"
	text, err := f.TOML()
	if err != nil || strings.Contains(text, "hunter2") {
		t.Errorf("%v\n%s", err, text)
	}
	for _, line := range []string{
		"# links = \"postgres://***@db/links\" # set by CURT_LINKS\n", "# accounts = \"host=db password=***\" #",
		"# base_url = \"https://***@go.example.com\" #", "\nlimits = \"free=10/m\" #",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("not printed: %s\n%s", line, text)
		}
	}
}

func TestHowLongBrowsersMayBeHeldToHTTPS(t *testing.T) {
	for lasts, want := range map[string]int{"731d": 1, "1ms": 1, "730d": 0, "1s": 0, "0s": 0} {
		cfg, err := parse(t, "--base-url=https://x", "--hsts="+lasts)
		if err != nil {
			t.Fatal(err)
		}
		if errs := cfg.Validate(); len(errs) != want {
			t.Errorf("%s: %v", lasts, errs)
		}
	}
}
