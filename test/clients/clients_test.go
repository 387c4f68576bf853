package clients_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

const (
	root        = "../.."
	description = root + "/api/openapi.yaml"
	verified    = "verified.sha256"

	// pythonClient is what scripts/venv installs.
	pythonClient = "openapi-python-client==0.29.1"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "note in verified.sha256 what the generators were given, when they pass")
	os.Exit(curttest.Main(m))
}

func update() bool { return flag.Lookup("update").Value.String() == "true" }

// given is what the result depends on, with its sums, as sha256sum writes them.
func given(t *testing.T) string {
	t.Helper()
	files := []string{description}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && name != verified && name != "doc.go" {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		list.WriteString(hex.EncodeToString(sum[:]) + "  " + filepath.ToSlash(name) + "\n")
	}
	return list.String()
}

// TestClientsOfAChangedDescription has clients made of a description that is not the noted one.
func TestClientsOfAChangedDescription(t *testing.T) {
	now := given(t)
	noted, err := os.ReadFile(verified)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if string(noted) == now && !update() {
		t.Log("six generators were given this description before and made clients that compile")
		return
	}
	switch {
	case !generate(t):
	case update():
		if err := os.WriteFile(verified, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Log("the description passes and is not noted: go test ./test/clients -update saves the next run the time")
	}
}

// TestClients has clients made, whatever is noted.
func TestClients(t *testing.T) {
	testkit.Faults(t)
	generate(t)
}

// generate has all generators make clients, and reports whether all of these do what they should.
func generate(t *testing.T) bool {
	t.Helper()
	s := curttest.Start(t, curttest.Options{})
	return t.Run("generators", func(t *testing.T) {
		for name, generate := range map[string]func(*generator){
			"oapi-codegen": oapiCodegen, "openapi-generator-go": openapiGo, "openapi-generator-python": openapiPython,
			"openapi-generator-typescript-fetch": openapiTypeScript, "openapi-typescript": openapiTypes, "openapi-python-client": pythonGenerator,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				generate(&generator{T: t, dir: t.TempDir(), server: s})
			})
		}
	})
}

// generator is one of them at work in a folder of its own.
type generator struct {
	*testing.T

	dir    string
	server *curttest.Server
}

// tool returns the absolute path of what a script installs into bin/tools.
func (g *generator) tool(path, how string) string {
	g.Helper()
	found, err := filepath.Glob(filepath.Join(root, "bin", "tools", path))
	if err == nil && len(found) == 1 {
		found[0], err = filepath.Abs(found[0])
	}
	if err != nil || len(found) != 1 {
		curttest.Need(g.T, how)
	}
	return found[0]
}

// program returns the path of one that is installed.
func (g *generator) program(name string) string {
	g.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		curttest.Need(g.T, name+" (scripts/need "+name+")")
	}
	return path
}

// run runs a command in a folder and returns what it wrote. No generator takes a quarter of
// an hour, but on a machine that does something else.
func (g *generator) run(dir string, env []string, name string, args ...string) string {
	g.Helper()
	ctx, cancel := context.WithTimeout(g.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		g.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, last(out.String()))
	}
	return out.String()
}

// last is the end of what was written, where the error is.
func last(text string) string {
	const most = 6000
	if len(text) > most {
		text = "…" + text[len(text)-most:]
	}
	return text
}

// spec is the absolute path of the description.
func (g *generator) spec() string {
	g.Helper()
	path, err := filepath.Abs(description)
	if err != nil {
		g.Fatal(err)
	}
	return path
}

// put copies a file into the generator's folder.
func (g *generator) put(from, to string) {
	g.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(filepath.Join(g.dir, to)), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(g.dir, to), text, 0o600)
	}
	if err != nil {
		g.Fatal(err)
	}
}

// crud runs a program that does everything with a link, and compares what it says.
func (g *generator) crud(env []string, name string, args ...string) {
	g.Helper()
	code := "made-" + strconv.Itoa(os.Getpid()) + "-" + filepath.Base(name)
	got := g.run(g.dir, env, name, append(args, "http://"+g.server.Addr, curttest.Key, code)...)
	want := "created https://example.com/a true\nread true true\nchanged Changed https://example.com/a\ndeleted 204 /problems/not-found\n"
	if got != want {
		g.Errorf("the client said:\n%s\nwant:\n%s", got, want)
	}
}

// goModule lays out the module that generated Go is compiled in.
func (g *generator) goModule() []string {
	g.Helper()
	g.put("gomod/go.mod", "go.mod")
	g.put("gomod/go.sum", "go.sum")
	return []string{"GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0"}
}

func oapiCodegen(g *generator) {
	env := g.goModule()
	if err := os.Mkdir(filepath.Join(g.dir, "api"), 0o755); err != nil {
		g.Fatal(err)
	}
	g.run("gomod", []string{"GOWORK=off"}, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "api", "-o", filepath.Join(g.dir, "api", "api.go"), g.spec())
	g.put("testdata/crud.go", "main.go")
	g.run(g.dir, env, "go", "vet", "./...")
	g.run(g.dir, env, "go", "build", "-o", "crud", ".")
	g.crud(nil, filepath.Join(g.dir, "crud"))
}

// openapiGenerator runs openapi-generator with its defaults.
func (g *generator) openapiGenerator(language, into string, more ...string) {
	g.Helper()
	jar := g.tool("maven/test/clients/libs/openapi-generator-cli-*.jar", "openapi-generator (scripts/maven test/clients)")
	g.run(g.dir, nil, g.program("java"), append([]string{"-jar", jar, "generate", "-g", language, "-i", g.spec(), "-o", filepath.Join(g.dir, into)}, more...)...)
}

func openapiGo(g *generator) {
	g.openapiGenerator("go", "openapi")
	made := filepath.Join(g.dir, "openapi")
	for _, name := range []string{"go.mod", "go.sum", "test"} { // the module is ours, and its tests want a server
		if err := os.RemoveAll(filepath.Join(made, name)); err != nil {
			g.Fatal(err)
		}
	}
	env := g.goModule()
	g.run(g.dir, env, "go", "vet", "./...")
}

// python returns the interpreter that has what generated clients import.
func (g *generator) python() string {
	g.Helper()
	g.tool("venv/bin/openapi-python-client", pythonClient+" (scripts/venv)")
	return g.tool("venv/bin/python", "python (scripts/venv)")
}

// imports compiles and imports a package.
func (g *generator) imports(python, name string, least int) {
	g.Helper()
	g.put("testdata/import_all.py", "import_all.py")
	g.run(g.dir, nil, python, "-m", "compileall", "-q", name)
	n, err := strconv.Atoi(strings.TrimSpace(g.run(g.dir, []string{"PYTHONPATH=" + g.dir}, python, "import_all.py", name)))
	if err != nil || n < least {
		g.Errorf("the client has %d modules (%v), want at least %d", n, err, least)
	}
}

func openapiPython(g *generator) {
	g.openapiGenerator("python", ".")
	g.imports(g.python(), "openapi_client", 80)
}

func pythonGenerator(g *generator) {
	python := g.python()
	config, err := filepath.Abs("openapi-python-client.yaml")
	if err != nil {
		g.Fatal(err)
	}
	// It formats by a program that stands beside it.
	path := "PATH=" + filepath.Dir(python) + string(os.PathListSeparator) + os.Getenv("PATH")
	g.run(g.dir, []string{path}, g.tool("venv/bin/openapi-python-client", pythonClient), "generate", "--path", g.spec(),
		"--config", config, "--output-path", filepath.Join(g.dir, "made"), "--meta", "none", "--fail-on-warning")
	g.imports(python, "made", 150)
	g.put("testdata/crud.py", "crud.py")
	g.crud(nil, python, filepath.Join(g.dir, "crud.py"))
}

// tsc checks a program, or compiles it into the folder.
func (g *generator) tsc(args ...string) {
	g.Helper()
	compiler := g.tool("npm/test/clients/node_modules/typescript/bin/tsc", "typescript (scripts/npm test/clients)")
	g.run(g.dir, nil, g.program("node"), append([]string{compiler, "--strict", "--target", "es2022", "--lib", "es2022,dom"}, args...)...)
}

func openapiTypeScript(g *generator) {
	g.openapiGenerator("typescript-fetch", "made")
	g.put("testdata/crud.ts", "crud.ts")
	g.tsc("--module", "commonjs", "--moduleResolution", "node10", "crud.ts")
	g.crud(nil, g.program("node"), filepath.Join(g.dir, "crud.js"))
}

func openapiTypes(g *generator) {
	program := g.tool("npm/test/clients/node_modules/openapi-typescript/bin/cli.js", "openapi-typescript (scripts/npm test/clients)")
	g.run(g.dir, nil, g.program("node"), program, g.spec(), "-o", filepath.Join(g.dir, "schema.d.ts"))
	g.put("testdata/types.ts", "types.ts")
	g.tsc("--noEmit", "--module", "esnext", "--moduleResolution", "bundler", "--exactOptionalPropertyTypes", "types.ts")
}
