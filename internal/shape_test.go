package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"curt/internal/link"
)

// mostStoreMethods is what a new store of links may owe. It was 61 when keys, leases and accounts
// hung on the same type.
const mostStoreMethods = 16

// mostCode is how many lines of Go the product may have: those of cmd and internal without blanks,
// comments, tests and what only tests import. Whoever needs more says here for what: 66,200 are those
// of one table of fields and one way to a link, 300 job leases, 200 what happened to
// links, 350 followers of a fleet, 280
// creates as a log.
const mostCode = 67_150

func TestTheProductStaysSmall(t *testing.T) {
	code := 0
	for _, root := range []string{"../cmd", "."} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (strings.HasSuffix(path, "test") || strings.HasSuffix(path, "testkit")):
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(path)
			for line := range strings.Lines(string(text)) {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
					code++
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if t.Logf("%d lines of code", code); code > mostCode {
		t.Errorf("%d lines of code, want %d at the most", code, mostCode)
	}
}

func TestALinkStoreOwesFewMethods(t *testing.T) {
	owed := reflect.TypeFor[link.Backend]()
	if n := owed.NumMethod(); n > mostStoreMethods {
		t.Errorf("a store of links owes %d methods, want %d at the most:", n, mostStoreMethods)
		for i := range n {
			t.Error(owed.Method(i).Name)
		}
	}
	// Nobody takes the store for more than that: for a driver's own type, or for an interface
	// of methods that link.Backend does not have.
	optional := regexp.MustCompile(`links\.\(([^)]*)`)
	allowed := map[string]bool{"link.ManyGetter": true, "link.Discarder": true, "link.EventLog": true, "interface{ Damaged(": true}
	of := os.DirFS("server")
	files, err := fs.Glob(of, "*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of the server: %v", err)
	}
	for _, name := range files {
		text, err := fs.ReadFile(of, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range optional.FindAllStringSubmatch(string(text), -1) {
			if !strings.HasSuffix(name, "_test.go") && !allowed[found[1]] {
				t.Errorf("server/%s takes links for %s", name, found[1])
			}
		}
	}
}
