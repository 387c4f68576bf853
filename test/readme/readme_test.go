package readme_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

const root = "../.."

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

// TestReadme follows README.md as somebody does who has just got the sources.
func TestReadme(t *testing.T) {
	page, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"make", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			curttest.Need(t, program+" (apt-get install "+program+")")
		}
	}
	newHome(t).follow(string(page), rows(), 15)
}

// TestTutorial follows docs/tutorial.md on the binary under test, and docs/api.md on the server
// that it leaves running.
func TestTutorial(t *testing.T) {
	h := newHome(t)
	if err := os.Mkdir(filepath.Join(h.folder, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(curttest.Binary(t), filepath.Join(h.folder, "bin", "curt")); err != nil {
		t.Fatal(err)
	}
	for _, page := range []struct {
		file string
		rows []row
		done int
	}{{"docs/tutorial.md", tutorialRows(), 20}, {"docs/api.md", apiRows(), 1}} {
		text, err := os.ReadFile(filepath.Join(root, page.file))
		if err != nil {
			t.Fatal(err)
		}
		h.follow(string(text), page.rows, page.done)
	}
}

// follow does what a page says, and fails when it follows fewer lines than least.
func (h *home) follow(page string, known []row, least int) {
	h.t.Helper()
	r := reader{rows: known, typ: h.typ, open: h.open, stay: h.stay}
	faults, done := r.follow(page)
	for _, f := range faults {
		h.t.Error(f)
	}
	if done < least {
		h.t.Errorf("%d lines were followed: the page or this test says too little", done)
	}
}

// home is a reader's folder with the sources in it, and what is set there.
type home struct {
	t      *testing.T
	folder string
	addr   string // of the server, instead of localhost:8080
	env    []string
}

// newHome copies what `make run` needs. The build cache is the reader's own: the
// binary is linked again, and nothing is compiled twice.
func newHome(t *testing.T) *home {
	t.Helper()
	h := &home{t: t, folder: t.TempDir(), addr: curttest.FreeAddr(t)}
	for _, name := range []string{"scripts", "web", "api"} { // the dashboard is built already
		whole, err := filepath.Abs(filepath.Join(root, name))
		if err == nil {
			err = os.Symlink(whole, filepath.Join(h.folder, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"client", "cmd", "internal"} {
		if err := os.CopyFS(filepath.Join(h.folder, name), os.DirFS(filepath.Join(root, name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"LICENSE", "Makefile", "go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(h.folder, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	h.env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "CURT_") || strings.HasPrefix(kv, "MAKE") || strings.HasPrefix(kv, "MFLAGS=")
	})
	h.env = append(h.env, "CURT_LISTEN="+h.addr, "CURT_ADMIN_LISTEN="+curttest.FreeAddr(t), "CURT_SERVER=http://"+h.addr,
		"PATH="+filepath.Join(h.folder, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return h
}

// here puts the server's own port where a text says 8080, and back puts 8080 there.
func (h *home) here(text string) string {
	_, port, _ := strings.Cut(h.addr, ":")
	return strings.ReplaceAll(text, "localhost:8080", "localhost:"+port)
}

func (h *home) back(text string) string {
	_, port, _ := strings.Cut(h.addr, ":")
	return strings.ReplaceAll(text, "localhost:"+port, "localhost:8080")
}

func (h *home) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", h.here(line))
	cmd.Dir, cmd.Env = h.folder, h.env
	return cmd
}

func (h *home) typ(line string) (string, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), 3*time.Minute)
	defer cancel()
	cmd := h.command(ctx, line)
	var said strings.Builder
	cmd.Stderr = &said // curl draws its progress there
	answer, err := cmd.Output()
	if err != nil {
		return said.String() + string(answer), err
	}
	return h.back(string(answer)), nil
}

func (h *home) open(address string) (string, error) {
	q, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.here(address), nil)
	if err != nil {
		return "", err
	}
	q.Header.Set("Accept", "text/html")
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return "", err
	}
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("answered %s", a.Status)
	}
	return h.back(string(text)), err
}

// stay starts a server, which ends with the test: exec, so that make has the signal and
// hands it on. A first build compiles everything.
func (h *home) stay(line string) {
	curttest.Begin(h.t, h.command(context.WithoutCancel(h.t.Context()), "exec "+line), h.addr, 15*time.Minute)
}
