package internal_test

import (
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"curt/internal/link"
)

// mostStoreMethods is what a new store of links may owe. It was 61 when keys, leases and accounts
// hung on the same type.
const mostStoreMethods = 16

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
	allowed := map[string]bool{"link.ManyGetter": true, "link.Discarder": true, "interface{ Damaged(": true}
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
