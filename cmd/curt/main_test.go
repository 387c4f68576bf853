package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"curt.example/client"
	"curt/internal/cli"
)

// curt runs one command and returns its exit code and what it wrote.
func curt(ctx context.Context, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(ctx, args, cli.Terminal{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// serving starts `curt serve` on free ports and returns its address and folder.
// It is stopped, and must have stopped well, when the test ends.
func serving(t *testing.T, args ...string) (address, folder string) {
	t.Helper()
	folder = t.TempDir()
	log := newLines()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	all := append([]string{"serve", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--data=" + folder}, args...)
	go func() { done <- run(ctx, all, cli.Terminal{In: strings.NewReader(""), Out: log, Err: log}) }()
	t.Cleanup(func() {
		stop()
		if code := <-done; code != 0 {
			t.Errorf("serve ended with %d:\n%s", code, log)
		}
	})
	select {
	case address = <-log.listening:
	case code := <-done:
		t.Fatalf("serve ended with %d:\n%s", code, log)
	case <-time.After(3 * time.Minute):
		t.Fatalf("serve does not listen:\n%s", log)
	}
	return "http://" + address, folder
}

// lines is a log that tells when the server listens.
type lines struct {
	bytes.Buffer // written by the server's handler one line at a time

	listening chan string
}

func newLines() *lines { return &lines{listening: make(chan string, 1)} }

func (l *lines) Write(line []byte) (int, error) {
	var entry struct{ Msg, Addr string }
	if json.Unmarshal(line, &entry) == nil && entry.Msg == "listening" {
		l.listening <- entry.Addr
	}
	return l.Buffer.Write(line)
}

func TestALinkIsMadeFollowedAndCounted(t *testing.T) {
	address, folder := serving(t)
	t.Setenv("CURT_SERVER", address)
	t.Setenv("CURT_API_KEY_FILE", filepath.Join(folder, "admin.key"))
	code, out, errs := curt(t.Context(), "shorten", "https://example.com/a", "https://example.com/b")
	urls := strings.Fields(out)
	if code != 0 || len(urls) != 2 || !strings.HasPrefix(urls[0], "http://localhost:") {
		t.Fatalf("shorten: %d %q %q", code, out, errs)
	}
	follow(t, address+urls[0][strings.LastIndex(urls[0], "/"):], "https://example.com/a")

	var s client.Stats
	for deadline := time.Now().Add(3 * time.Minute); s.TotalClicks == 0 && time.Now().Before(deadline); {
		code, out, errs = curt(t.Context(), "stats", "--json", urls[0])
		if err := json.Unmarshal([]byte(out), &s); code != 0 || err != nil {
			t.Fatalf("stats: %d %q %q %v", code, out, errs, err)
		}
	}
	if s.TotalClicks != 1 || s.HumanClicks != 1 {
		t.Errorf("statistics: %+v", s)
	}
	code, out, _ = curt(t.Context(), "stats", "--interval=hour", urls[0])
	if code != 0 || !regexp.MustCompile(`(?m)^clicks +1$`).MatchString(out) || !strings.Contains(out, "█") && !strings.Contains(out, "▁") {
		t.Errorf("stats: %d\n%s", code, out)
	}
}

func TestStatsOfAShortURLAreThoseOfItsDomain(t *testing.T) {
	address, folder := serving(t, "--domains=s.example")
	t.Setenv("CURT_SERVER", address)
	t.Setenv("CURT_API_KEY_FILE", filepath.Join(folder, "admin.key"))
	code, out, errs := curt(t.Context(), "shorten", "--alias=same", "https://example.com/a")
	if code != 0 {
		t.Fatalf("shorten: %d %q", code, errs)
	}
	if code, _, errs = curt(t.Context(), "stats", strings.TrimSpace(out)); code != 0 {
		t.Errorf("on its domain: %d %q", code, errs)
	}
	for _, other := range []string{"https://s.example/same", "https://stranger.example/same"} {
		if code, out, _ = curt(t.Context(), "stats", other); code != 1 || out != "" {
			t.Errorf("%s: %d %q", other, code, out)
		}
	}
	for _, name := range []string{"curt.db", "clicks.db"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func follow(t *testing.T, short, want string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, short, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusFound || resp.Header.Get("Location") != want {
		t.Fatalf("GET %s: %s, Location %q, %v", short, resp.Status, resp.Header.Get("Location"), err)
	}
}

func TestErrorsAreOneLineWithTheirExitCode(t *testing.T) {
	t.Setenv("CURT_SERVER", "http://127.0.0.1:1")
	folder := t.TempDir()
	file := filepath.Join(folder, "curt.toml")
	if err := os.WriteFile(file, []byte("listn = \"127.0.0.1:0\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{2, "expected one of", nil},
		{2, "unexpected argument", []string{"fly"}},
		{2, "--alias: expected string value, but none is given", []string{"shorten", "https://example.com", "--alias"}},
		{2, "one URL", []string{"shorten", "--alias=abc", "https://a.example", "https://b.example"}},
		{2, "whole seconds", []string{"shorten", "--expires-in=1500ms", "https://a.example"}},
		{69, "connection refused; is the server running?", []string{"shorten", "https://a.example"}},
		{69, "connection refused", []string{"stats", "abc"}},
		{2, "neither a code nor a short URL", []string{"stats", ""}},
		{2, "neither a code nor a short URL", []string{"stats", "http://localhost/a/b"}},
		{2, "nothing to change", []string{"links", "update", "abc"}},
		{2, "is not a whole number", []string{"links", "update", "--max-clicks=few", "abc"}},
		{2, "is not a date", []string{"stats", "--from=yesterday", "abc"}},
		{2, "use --yes", []string{"links", "delete", "abc"}},
		{2, "use --yes", []string{"keys", "revoke", "abc"}},
		{2, "--limit", []string{"links", "list", "--limit=0"}},
		{2, `--limit: expected a whole number, not "ten"`, []string{"links", "list", "--limit=ten"}},
		{2, `--within: expected a duration, such as 30s or 24h, not "soon"`, []string{"doctor", "--within=soon"}},
		{2, "can't be used together", []string{"links", "list", "--json", "--csv"}},
		{78, "CURT_SERVER", []string{"stats", "--server=nowhere", "abc"}},
		{78, "CURT_CODE_LENGTH=3", []string{"serve", "--code-length=3"}},
		{78, "CURT_CACHE=redis://x", []string{"serve", "--cache=redis://x"}},
		{78, "listn", []string{"serve", "--config=" + file}},
		{78, `CURT_LIMITS=gold=1/m: unknown plan "gold"`, []string{"serve", "--listen=127.0.0.1:0", "--admin-listen=", "--data=" + folder, "--limits=gold=1/m"}},
		{78, `CURT_REDIRECT_LIMIT=host=1/s: expected network=LIMIT`, []string{"serve", "--listen=127.0.0.1:0", "--admin-listen=", "--data=" + folder, "--redirect-limit=host=1/s"}},
		{78, `CURT_UNKNOWN_LIMIT=often: "often": expected a count`, []string{"serve", "--listen=127.0.0.1:0", "--admin-listen=", "--data=" + folder, "--unknown-limit=often"}},
		{78, `CURT_WEIGHTS=login=20: unknown signal "login"`, []string{"serve", "--listen=127.0.0.1:0", "--admin-listen=", "--data=" + folder, "--weights=login=20"}},
		{78, `CURT_THRESHOLDS=block=10: thresholds 100, 60, 10`, []string{"serve", "--listen=127.0.0.1:0", "--admin-listen=", "--data=" + folder, "--thresholds=block=10"}},
		{78, `CURT_SHORTENERS=block: expected one of allow, warn, refuse`, []string{"serve", "--listen=127.0.0.1:0", "--admin-listen=", "--data=" + folder, "--shorteners=block"}},
		{78, `CURT_PRIVATE_TARGETS=no: expected one of allow, warn, refuse`, []string{"serve", "--listen=127.0.0.1:0", "--admin-listen=", "--data=" + folder, "--private-targets=no"}},
		{78, `CURT_BRANDS=/nowhere/brands.txt: read the brands: `, []string{"serve", "--listen=127.0.0.1:0", "--admin-listen=", "--data=" + folder, "--brands=/nowhere/brands.txt"}},
		{78, `CURT_SHORTENERS_FILE=/dev/null: read the shorteners: `, []string{"serve", "--listen=127.0.0.1:0", "--admin-listen=", "--data=" + folder, "--shorteners-file=/dev/null"}},
		{78, "CURT_ADMIN_KEY", []string{"serve", "--listen=127.0.0.1:0", "--admin-listen=", "--data=" + folder, "--admin-key=short"}},
		{78, "--code-length=abc: expected a whole number", []string{"serve", "--code-length", "abc"}},
		{78, "CURT_CODES=uuid: expected one of range, random, hash, words, snowflake, pool", []string{"serve", "--codes=uuid"}},
		{78, "CURT_SNOWFLAKE=raw: expected permuted or plain", []string{"serve", "--snowflake=raw"}},
		{2, "unknown flag --code-lenth", []string{"serve", "--code-lenth=7"}},
		{78, "CURT_LISTEN=nowhere.invalid:80", []string{"serve", "--listen=nowhere.invalid:80", "--data=" + folder}},
		{1, "CURT_LISTEN=192.0.2.1:80", []string{"serve", "--listen=192.0.2.1:80", "--data=" + folder}},
	} {
		code, _, errs := curt(t.Context(), c.args...)
		if code != c.code || !strings.Contains(errs, c.says) || strings.Count(errs, "\n") != 1 {
			t.Errorf("curt %s: exit %d, %q; want exit %d and one line with %q", strings.Join(c.args, " "), code, errs, c.code, c.says)
		}
	}
}

func TestFileEnvironmentAndFlagsInThatOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "curt.toml")
	if err := os.WriteFile(file, []byte("code_length = 3\ndomains = [\"a.example\", \"b.example\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ env, flag, says string }{
		{"", "", "CURT_CODE_LENGTH=3"},
		{"2", "", "CURT_CODE_LENGTH=2"},
		{"2", "--code-length=1", "CURT_CODE_LENGTH=1"},
	} {
		if c.env != "" {
			t.Setenv("CURT_CODE_LENGTH", c.env)
		}
		args := []string{"serve", "--config=" + file}
		if c.flag != "" {
			args = append(args, c.flag)
		}
		if code, _, errs := curt(t.Context(), args...); code != 78 || !strings.Contains(errs, c.says) {
			t.Errorf("environment %q, flag %q: exit %d, %q", c.env, c.flag, code, errs)
		}
	}
}

func TestSecondServerOnAFolderIsRefused(t *testing.T) {
	_, folder := serving(t)
	code, _, errs := curt(t.Context(), "serve", "--listen=127.0.0.1:0", "--admin-listen=", "--data="+folder)
	if code != 1 || !strings.Contains(errs, "another curt is using this folder") || strings.Count(errs, "\n") != 1 {
		t.Errorf("exit %d, %q", code, errs)
	}
}

func TestVersion(t *testing.T) {
	if code, out, _ := curt(t.Context(), "version"); code != 0 || !strings.HasPrefix(out, "curt ") {
		t.Errorf("exit %d, %q", code, out)
	}
}
