package client_test

import (
	"archive/zip"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"curt/test/internal/curttest"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

// clientFolder is the module as it stands in the repository.
const clientFolder = "../../client"

// clientVersion is the one that the test publishes.
const clientVersion = "v1.2.3"

// program is what somebody else writes; CLIENT stands for the module's path.
const program = `package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"CLIENT"
)

func main() {
	ctx := context.Background()
	c, err := client.New(os.Args[1], client.WithKey(os.Args[2]))
	check(err)
	made, err := c.Create(ctx, client.NewLink{LongURL: "https://example.com/a", CustomAlias: "module"})
	check(err)
	got, err := c.Get(ctx, "module")
	check(err)
	fmt.Println(made.ID == got.ID, got.LongURL)
	changed, err := c.Update(ctx, "module", map[string]any{"long_url": "https://example.com/b"})
	check(err)
	fmt.Println(changed.LongURL, changed.Version)
	check(c.Delete(ctx, "module"))
	_, err = c.Get(ctx, "module")
	var p *client.Problem
	fmt.Println(errors.As(err, &p) && p.Status == 404)
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
`

// TestClientIsAModule requires the client from another module, as go get does: from a
// module proxy, which here is a folder, into an empty module cache. What is built makes,
// reads, changes and deletes a link.
func TestClientIsAModule(t *testing.T) {
	path := modulePath(t)
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		t.Fatalf("nobody can require %s: its first element is no host", path)
	}
	folder, proxy, cache := t.TempDir(), t.TempDir(), t.TempDir()
	publish(t, proxy, path)
	write(t, filepath.Join(folder, "go.mod"), "module example.com/program\n\ngo 1.26.0\n")
	write(t, filepath.Join(folder, "main.go"), strings.ReplaceAll(program, "CLIENT", path))
	goTool := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "GOPROXY=file://"+proxy, "GOSUMDB=off", "GONOSUMDB=", "GONOPROXY=none", "GOPRIVATE=", "GOWORK=off",
			"GOMODCACHE="+cache, "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	goTool("get", path+"@latest")
	goTool("build", "-o", "program", ".")
	if all := strings.Fields(goTool("list", "-m", "all")); len(all) != 3 || all[1] != path || all[2] != clientVersion {
		t.Errorf("the program needs the modules %v, want the client alone", all)
	}

	s := curttest.Start(t, curttest.Options{})
	out, err := exec.CommandContext(t.Context(), filepath.Join(folder, "program"), "http://"+s.Addr, curttest.Key).CombinedOutput()
	if want := "true https://example.com/a\nhttps://example.com/b 2\ntrue\n"; err != nil || string(out) != want {
		t.Errorf("%v:\n%s\nwant:\n%s", err, out, want)
	}
}

// modulePath is what the client's go.mod calls it.
func modulePath(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	cmd.Dir = clientFolder
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Module  struct{ Path string }
		Require []struct{ Path string }
		Replace []any
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	if len(mod.Require) > 0 || len(mod.Replace) > 0 {
		t.Errorf("the client requires %v and replaces %v: it may use the standard library only", mod.Require, mod.Replace)
	}
	return mod.Module.Path
}

// publish puts the module into a folder that is laid out as a proxy answers.
func publish(t *testing.T, proxy, path string) {
	t.Helper()
	versions := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(clientFolder, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(versions, "list"), clientVersion+"\n")
	write(t, filepath.Join(versions, clientVersion+".info"), `{"Version":"`+clientVersion+`"}`)
	write(t, filepath.Join(versions, clientVersion+".mod"), string(mod))
	f, err := os.Create(filepath.Join(versions, clientVersion+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(f)
	err = fs.WalkDir(os.DirFS(clientFolder), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(clientFolder, name))
		if err != nil {
			return err
		}
		w, err := archive.Create(path + "@" + clientVersion + "/" + name)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
