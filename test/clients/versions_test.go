package clients_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// docs/clients.md says which versions are known to work: those that are pinned here.
func TestVersionsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	for program, pinned := range map[string]struct{ file, like string }{
		"oapi-codegen":          {"gomod/go.mod", `oapi-codegen/v2 v(\S+)`},
		"openapi-generator":     {"pom.xml", `<version>(\d+\.\d+\.\d+)</version>`},
		"openapi-typescript":    {"package.json", `"openapi-typescript": "(\S+)"`},
		"openapi-python-client": {"clients_test.go", `"openapi-python-client==(\S+)"`},
	} {
		text, err := os.ReadFile(pinned.file)
		if err != nil {
			t.Fatal(err)
		}
		version := regexp.MustCompile(pinned.like).FindSubmatch(text)
		if version == nil {
			t.Errorf("%s pins no version of %s", pinned.file, program)
			continue
		}
		found := false
		for line := range strings.Lines(string(page)) {
			found = found || strings.Contains(line, program) && strings.Contains(line, "| "+string(version[1])+" |")
		}
		if !found {
			t.Errorf("docs/clients.md does not name %s %s", program, version[1])
		}
	}
}
