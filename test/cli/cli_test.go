// Package cli_test types commands on the built binary: those that docs/cli.md shows,
// with the answers it shows, and scripts with terminals, signals and hostile servers.
package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

// environment is what a person would have set to reach the server.
func environment(t *testing.T, s *curttest.Server) []string {
	t.Helper()
	bin := t.TempDir()
	if err := os.Symlink(curttest.Binary(t), filepath.Join(bin, "curt")); err != nil {
		t.Fatal(err)
	}
	return []string{
		"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"CURT_SERVER=http://" + s.Addr, "CURT_API_KEY=" + curttest.Key, "TZ=UTC",
		"CURT_DATA=" + s.Data,
	}
}

func start(t *testing.T) *curttest.Server {
	t.Helper()
	return curttest.Start(t, curttest.Options{Env: []string{"CURT_BASE_URL=https://go.example.com"}})
}

// TestDocumentedCommands types what stands behind $ in the blocks of docs/cli.md, one
// after the other in one folder. "…" in an answer is any text of one line.
func TestDocumentedCommands(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	env, folder, commands := environment(t, start(t)), t.TempDir(), 0
	for _, block := range regexp.MustCompile("(?ms)^```console\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
		for _, example := range regexp.MustCompile(`(?m)^\$ `).Split(block[1], -1)[1:] {
			command, want, _ := strings.Cut(example, "\n")
			commands++
			expr := regexp.MustCompile(`^` + strings.ReplaceAll(regexp.QuoteMeta(want), "…", `[^\n]*`) + `$`)
			got := typed(t, command, folder, env)
			// Lists by words and tags are some seconds behind, as the page says.
			searches := strings.HasPrefix(command, "curt links list") || strings.Contains(command, "--dry-run")
			for end := time.Now().Add(3 * time.Minute); !expr.Match(got) && searches && time.Now().Before(end); {
				got = typed(t, command, folder, env)
			}
			if !expr.Match(got) {
				t.Errorf("$ %s\nprinted\n%s\nand docs/cli.md says\n%s", command, got, want)
			}
		}
	}
	if commands < 15 {
		t.Errorf("found %d commands: the page or this test says too little", commands)
	}
}

// typed runs a command line and returns what it printed, without the spaces that
// tables leave at the ends of lines.
func typed(t *testing.T, command, folder string, env []string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	plain := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "CURT_") })
	cmd.Dir, cmd.Env = folder, append(plain, env...)
	text, _ := cmd.CombinedOutput() // some are there to fail: the page shows their $?
	return regexp.MustCompile(`(?m) +$`).ReplaceAll(text, nil)
}

// TestScripts runs the scripts of testdata. They share one server, and beside it a
// hostile one at $HOSTILE.
func TestScripts(t *testing.T) {
	env := append(environment(t, start(t)), "HOSTILE="+hostile(t))
	testscript.Run(t, testscript.Params{
		Dir: "testdata", RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, env...)
			return nil
		},
	})
}

// hostile starts a server whose every text tries to rule the terminal and the
// spreadsheet that show it.
func hostile(t *testing.T) string {
	t.Helper()
	text := `"=\u001b[2J\u009b1m\r\n\u202etxt"`
	page := strings.ReplaceAll(`{"short_url":T,"long_url":T,"title":T,"state":T,"tags":[T],"key":T,"id":T,"name":T,"workspace_id":T,"scopes":[T]}`, "T", text)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer := page
		switch {
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusForbidden)
			answer = `{"title":` + text + `,"detail":` + text + `}`
		case strings.HasSuffix(r.URL.Path, "/decisions"):
			answer = `{"results":[{"status":200,"link":` + page + `},{"status":409,"problem":{"title":` + text + `}}]}`
		case strings.Contains(r.URL.Path, "/reviews"):
			file := strings.ReplaceAll(`{"short_url":T,"sources":[T],"state":"open","link":P,"findings":[{"signal":T,"evidence":T}],"reported":[{"category":"","text":T,"contact":T}],`+
				`"appeal":{"reason":T,"answer":T},"history":[{"reason":T}]}`, "T", text)
			file = strings.ReplaceAll(file, "P", page)
			answer = strings.TrimSuffix(file, "}") + `,"reviews":[` + file + `]}`
		case strings.HasSuffix(r.URL.Path, "/bulk"):
			answer = `{"results":[{"status":201,"link":` + page + `},{"status":409,"problem":{"title":` + text + `}},{"status":201}]}`
		case strings.HasSuffix(r.URL.Path, "/stats"):
			answer = `{"top":{"city":[{"value":` + text + `,"clicks":1}]}}`
		case strings.HasSuffix(r.URL.Path, "/clicks"):
			answer = `{"clicks":[{"browser":` + text + `,"referrer_host":` + text + `}]}`
		case r.Method == http.MethodGet:
			answer = `{"links":[` + page + `],"keys":[` + page + `]}`
		}
		_, _ = io.WriteString(w, answer)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}
