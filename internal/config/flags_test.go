package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"curt/internal/config"
)

// command is curt with one command that takes settings.
type command struct {
	Serve struct{ config.Flags } `cmd:""`
}

// read reads settings as curt does; the file's text is put into a file.
func read(t *testing.T, file string, args ...string) (config.Flags, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "curt.toml")
	if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return readFile(t, name, args...)
}

func readFile(t interface {
	Helper()
	Fatal(args ...any)
}, name string, args ...string,
) (config.Flags, error) {
	t.Helper()
	var c command
	p, err := kong.New(&c, kong.Exit(func(int) { t.Fatal("asked to exit") }))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Parse(append([]string{"serve", "--config=" + name}, args...))
	return c.Serve.Flags, err
}

func TestTheFileSetsEveryType(t *testing.T) {
	f, err := read(t, `
listen = "127.0.0.1:1"
domains = ["a.example", "b.example"]
trusted_proxies = []
strict_host = true
anonymous = false
code_length = 9
drain_limit = "7s"
click_log_max = 268435456
cache_size = "1MiB"
raw_retention = "2d"
base_url = ""
`)
	if err != nil {
		t.Fatal(err)
	}
	got := []any{f.Listen, f.Domains, len(f.TrustedProxies), *f.StrictHost, *f.Anonymous, f.CodeLength, f.DrainLimit.String(), f.ClickLogMax.String(), f.CacheSize.String(), f.RawRetention.String(), f.BaseURL, f.Lane}
	want := []any{"127.0.0.1:1", []string{"a.example", "b.example"}, 0, true, false, 9, "7s", "256MiB", "1MiB", "2d", "", "on"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestWhatIsWrongInTheFileIsNamedWithItsLine(t *testing.T) {
	for file, want := range map[string]string{
		"lane = \"on\"\n\nlistn = \"x\"\n":            "listn=x: no such setting; did you mean listen (set in FILE, line 3)",
		"Lane = \"on\"\n":                             "Lane=on: no such setting; did you mean lane (set in FILE, line 1)",
		"zzzzzzzz = 1\n":                              "zzzzzzzz=1: no such setting; see curt serve --help (set in FILE, line 1)",
		"admin_kye = \"curt_secret\"\n":               "admin_kye=***: no such setting; did you mean admin_key (set in FILE, line 1)",
		"admin_key = 123456\n":                        "admin_key=***: expected a quoted string (set in FILE, line 1)",
		"[serve]\nlane = \"on\"\n":                    "serve=map[lane:on]: no such setting",
		"lane.x = 1\n":                                "lane=map[x:1]: expected a quoted string (set in FILE, line 1)",
		"\"code_length\" = \"7\"\n":                   "code_length=7: expected a whole number, without quotes (set in FILE, line 1)",
		"code_length = 7\ncode_length = 7\n":          "CURT_CONFIG=FILE: line 2: toml: key code_length is already defined",
		"lane = on\n":                                 "CURT_CONFIG=FILE: line 1: ",
		"domains = [\"a,b\"]\n":                       "domains=[a,b]: expected a list",
		"domains = [1]\n":                             "domains=[1]: expected a list",
		"domains = \"a.example\"\n":                   "domains=a.example: expected a list",
		"drain_limit = \"soon\"\n":                    "drain_limit=soon: expected a duration, such as 30s or 24h (set in FILE, line 1)",
		"drain_limit = 5\n":                           "drain_limit=5: expected a quoted duration",
		"listen = \"a\\u0000b\"\n":                    `listen="a\x00b": expected text without NUL`,
		"lane = \"\"\n":                               "lane=: set, but empty",
		"data = 1979-05-27\n":                         "data=1979-05-27: expected a quoted string",
		"config = \"other.toml\"\n":                   "config=other.toml: no such setting",
		"x = 1 # " + strings.Repeat("long ", 300_000): "CURT_CONFIG=FILE: FILE is larger than 1 MiB",
	} {
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readFile(t, name)
		if err == nil || !errors.As(err, new(*config.Error)) || !strings.HasPrefix(strings.ReplaceAll(err.Error(), name, "FILE"), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: got %v, want %s", file, err, want)
		}
	}
}

// TestTheParserSpeaksPlainly: what is wrong with a value of another type is said in words that name no type of a program.
func TestTheParserSpeaksPlainly(t *testing.T) {
	for flag, want := range map[string]string{
		"--code-length=seven":        "expected a whole number",
		"--code-length=7.5":          "expected a whole number",
		"--drain-limit=soon":         "expected a duration, such as 30s or 24h",
		"--writes-accept-loss=maybe": "expected true or false",
	} {
		_, err := read(t, "", flag)
		if err == nil {
			t.Errorf("%s is accepted", flag)
			continue
		}
		if err := config.WrongFlag(err, []string{flag}); err == nil || err.Error() != flag+": "+want {
			t.Errorf("%s: %v, want %s", flag, err, want)
		}
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		t.Run(flag, func(t *testing.T) {
			variable := "CURT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			t.Setenv(variable, value)
			if _, err := read(t, ""); err == nil || err.Error() != variable+"="+value+": "+want {
				t.Errorf("%s: %v, want %s", variable, err, want)
			}
		})
	}
	for text, want := range map[string][2]string{
		`--limit: expected a valid 64 bit int but got "ten"`:                           {"--limit: expected a whole number", `"ten"`},
		`--n: expected a valid 16 bit uint but got "-1"`:                               {"--n: expected a whole number, 0 or more", `"-1"`},
		`--share: expected a float but got "a \"b" (string)`:                           {"--share: expected a number", `"a \"b"`},
		`--within: expected duration but got "soon": time: invalid duration "soon"`:    {"--within: expected a duration, such as 30s or 24h", `"soon"`},
		`--yes: bool value must be true, 1, yes, false, 0 or no but got "but got \"x"`: {"--yes: expected true or false", `"but got \"x"`},
		`unexpected argument but got "x"`:                                              {`unexpected argument but got "x"`, ""},
		"unknown flag --x":                                                             {"unknown flag --x", ""},
	} {
		if said, value := config.Plain(text); said != want[0] || value != want[1] {
			t.Errorf("%s: %q, %q; want %q", text, said, value, want)
		}
	}
}

// An empty entry of a list of files would be the working directory otherwise.
func TestAnEmptyEntryIsToldWithItsSetting(t *testing.T) {
	const want = ": empty entry; remove the extra comma"
	for _, list := range []string{"a.txt,,b.txt", "a.txt,", ",a.txt", ",", ",,", "a.txt,,"} {
		for _, s := range []struct{ variable, flag string }{
			{"CURT_BLOCKLISTS", "--blocklists"},
			{"CURT_REFUSED_WORDS", "--refused-words"},
			{"CURT_DOMAINS", "--domains"},
			{"CURT_TRUSTED_PROXIES", "--trusted-proxies"},
		} {
			for _, args := range [][]string{{s.flag + "=" + list}, {s.flag, list}, {s.flag + "=c.txt", s.flag + "=" + list}} {
				if _, err := read(t, "", args...); err == nil || err.Error() != s.flag+"="+list+want {
					t.Errorf("%v: %v", args, err)
				}
			}
			t.Run(s.variable, func(t *testing.T) {
				t.Setenv(s.variable, list)
				if _, err := read(t, ""); err == nil || err.Error() != s.variable+"="+list+want {
					t.Error(err)
				}
			})
		}
	}
	if f, err := read(t, "", `--blocklists=/a,/b`, "--blocklists=/c", "--domains="); err != nil || len(f.Blocklists) != 3 {
		t.Errorf("%v %v", f.Blocklists, err)
	}
}

func TestSeveralMistakesAreToldAtOnce(t *testing.T) {
	t.Setenv("CURT_LISTN", "x")
	t.Setenv("CURT_CODE_LENGTH", "seven")
	_, err := read(t, "lane = 1\n", "--fold=on", "--fold=pause")
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("got %v, want four lines", err)
	}
}

func TestUnknownVariablesAreToldWithTheNearest(t *testing.T) {
	for name, want := range map[string]string{
		"CURT_LISTN": "CURT_LISTEN", "CURT_BASEURL": "CURT_BASE_URL", "CURT_GEO_IP": "CURT_GEOIP", "CURT_": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "x")
			_, err := read(t, "")
			if err == nil || !strings.Contains(err.Error(), name+"=") || !strings.Contains(err.Error(), "did you mean "+want) == (want != "") {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// What config print writes is a file that sets the same.
func TestPrintedSettingsAreAFile(t *testing.T) {
	dir := t.TempDir()
	text := rapid.StringMatching(`[ -~é\t]{1,20}`)
	rapid.Check(t, func(r *rapid.T) {
		args := []string{
			"--listen=" + text.Draw(r, "listen"), "--base-url=" + text.Draw(r, "url"), "--limits=" + text.Draw(r, "limits"),
			"--domains=" + rapid.StringMatching(`[a-z]{1,3}(,[a-z"]{1,3}){0,2}`).Draw(r, "domains"),
			"--cache-size=" + config.Size(rapid.Int64Range(0, 1<<50).Draw(r, "size")).String(),
			"--drain-limit=" + rapid.SampledFrom([]string{"0s", "1ms", "1h0m1s"}).Draw(r, "limit"),
			"--anonymous=" + rapid.SampledFrom([]string{"true", "false"}).Draw(r, "anonymous"), "--admin-listen=",
		}
		name := filepath.Join(dir, "curt.toml")
		write := func(text string) {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				r.Fatal(err)
			}
		}
		write("")
		first, err := readFile(r, name, args...)
		if err != nil {
			r.Fatal(err)
		}
		printed, err := first.TOML()
		if err != nil {
			r.Fatal(err)
		}
		write(printed)
		second, err := readFile(r, name)
		if err != nil {
			r.Fatalf("%v in\n%s", err, printed)
		}
		if d := cmp.Diff(first.Config, second.Config); d != "" {
			r.Fatalf("%s\n%s", d, printed)
		}
	})
}

func TestPrintingShowsNoSecret(t *testing.T) {
	f, err := read(t, "code_length = 8\n", "--admin-key=hunter2")
	if err != nil {
		t.Fatal(err)
	}
	text, err := f.TOML()
	if err != nil || strings.Contains(text, "hunter2") || !strings.Contains(text, "# admin_key = \"***\" # set by --admin-key\n") ||
		!strings.Contains(text, "code_length = 8 # set in ") || !strings.Contains(text, "lane = \"on\" # default\n") || strings.Contains(text, "synchronous") {
		t.Errorf("%v\n%s", err, text)
	}
}
