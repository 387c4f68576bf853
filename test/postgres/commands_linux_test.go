package postgres_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"curt/test/internal/curttest"
)

// command runs curt with a server's settings and returns its exit code and what it printed.
func (n node) command(t *testing.T, url string, args ...string) (code int, out, errs string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), curttest.Binary(t), args...)
	c.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "CURT_") })
	c.Env = append(c.Env, "CURT_DATA="+n.Data, "CURT_LINKS="+url, "CURT_ADMIN_KEY="+curttest.Key, "CURT_API_KEY="+curttest.Key,
		"CURT_SERVER=http://"+n.Addr, "CURT_LISTEN="+n.Addr, "CURT_ADMIN_LISTEN="+n.Admin)
	var stdout, stderr strings.Builder
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// TestCommandsWithLinksElsewhere: what works on links through the API works as ever; what
// reads the data folder says in one line that they are not there, and changes nothing.
func TestCommandsWithLinksElsewhere(t *testing.T) {
	t.Parallel()
	url := database(t)
	n := begin(t, 1, url)[0]
	taken := filepath.Join(t.TempDir(), "backup")
	file := filepath.Join(t.TempDir(), "links.csv")
	if err := os.WriteFile(file, []byte("long_url,short_code\nhttps://example.com/imported,imported\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := n.command(t, url, "import", file); code != 0 {
		t.Errorf("import: %d %s %s", code, out, errs)
	}
	if got, to := n.answers(t, "/imported"); to != "https://example.com/imported" {
		t.Errorf("what was imported: %d to %s", got, to)
	}
	if code, out, errs := n.command(t, url, "doctor"); code > 1 || !strings.Contains(out, "not checked: links are in the database") ||
		!strings.Contains(out, "CURT_LINKS=postgres://") || strings.Contains(out, "failure") {
		t.Errorf("doctor: %d %s %s", code, out, errs)
	}
	if code, _ := n.Terminate(t); code != 0 {
		t.Fatalf("ended with %d", code)
	}
	exported := filepath.Join(t.TempDir(), "links.jsonl")
	if err := os.WriteFile(exported, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"backup", taken}, {"export"}, {"import", "--data=" + n.Data, exported}, {"restore", taken}, {"restore", "--force", taken}} {
		code, out, errs := n.command(t, url, args...)
		if code == 0 || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "in the database of CURT_LINKS") {
			t.Errorf("%v: %d %q %q", args, code, out, errs)
		}
	}
	if _, err := os.Stat(taken); err == nil {
		t.Error("a backup was begun")
	}
	if _, err := os.Stat(filepath.Join(n.Data, "curt.db")); err == nil {
		t.Error("the folder has links of its own now")
	}
	if code, _, errs := n.command(t, url, "export", "totals"); code != 0 { // those are here
		t.Errorf("export totals: %d %s", code, errs)
	}
	again := begin(t, 1, url, "CURT_DATA="+n.Data)[0]
	if _, err := again.api.Get(t.Context(), "imported"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestCommandsWithStatisticsElsewhere: the same of a server whose statistics are in a
// database, and that follows links alone.
func TestCommandsWithStatisticsElsewhere(t *testing.T) {
	t.Parallel()
	url := database(t)
	n := begin(t, 1, url, "CURT_ROLE=redirect", "CURT_ANALYTICS="+url)[0]
	if code, out, errs := n.command(t, url, "doctor", "--role=redirect", "--analytics="+url); code > 1 || strings.Contains(out, "failure") ||
		!strings.Contains(out, "not checked: statistics are in the database") {
		t.Errorf("doctor: %d %s %s", code, out, errs)
	}
	for _, what := range []string{"totals", "rollups"} {
		if code, out, errs := n.command(t, url, "export", what); code == 0 || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "are in the database of CURT_ANALYTICS") {
			t.Errorf("export %s: %d %q %q", what, code, out, errs)
		}
	}
}
