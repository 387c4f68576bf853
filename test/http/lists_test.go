package http_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"curt/test/internal/curttest"
)

// TestListsOfModerators changes the lists of a running server by the command line: they combine
// with the operator's files, hold over a restart, and are exported as they are imported.
func TestListsOfModerators(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	never := filepath.Join(dir, "never.txt")
	if err := os.WriteFile(never, []byte("rude*\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	options := curttest.Options{Data: filepath.Join(dir, "data"), Env: []string{"CURT_REFUSED_WORDS=" + never}}
	s := curttest.Start(t, options)
	create := func(alias, to string) int {
		return asAdmin(t, s, "POST", "/api/v1/links", fmt.Sprintf(`{"long_url":%q,"custom_alias":%q}`, to, alias)).Status
	}
	refused := func(aliases ...string) {
		t.Helper()
		for _, alias := range aliases {
			if status := create(alias, "https://example.com/"); status != http.StatusConflict {
				t.Errorf("%s: %d", alias, status)
			}
		}
	}
	curt := func(input string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), curttest.Binary(t), args...)
		cmd.Env, cmd.Stdin = []string{"CURT_SERVER=http://" + s.Addr, "CURT_API_KEY=" + curttest.Key}, strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	refused("rudest", "googel", "paypa1", "sh1t", "adm1n")
	if status := create("victim", "https://a.evil.example/"); status != http.StatusCreated {
		t.Fatalf("%d", status)
	}
	curt("~casino\nbingo* # and what begins so\n", "lists", "import", "refused_words", "--reason=no gambling")
	curt("", "lists", "add", "look_alikes", "acmebank", "--reason=ours")
	curt("", "lists", "add", "look_alikes", "--reason=a fan page", "--", "-paypal")
	curt("", "lists", "add", "blocked_destinations", "evil.example", "--reason=phishing")
	refused("cas1no", "bingo-night", "acmebnak", "rudest")
	if status := create("paypa1", "https://example.com/"); status != http.StatusCreated {
		t.Errorf("a disabled name: %d", status)
	}
	await(t, http.StatusForbidden, func() curttest.Answer { return asAdmin(t, s, "GET", "/victim", "") })
	if status := create("other", "https://b.evil.example/"); status != http.StatusUnprocessableEntity {
		t.Errorf("a blocked destination: %d", status)
	}
	if out := curt("", "lists", "list"); !strings.Contains(out, "look_alikes") {
		t.Error(out)
	}
	if out := curt("", "lists", "list", "look_alikes", "--builtin"); !strings.Contains(out, "paypal         disabled") && !strings.Contains(out, "disabled") {
		t.Error(out)
	}
	if out := curt("", "journal", "list", "--entity=refused_word:~casino"); !strings.Contains(out, "no gambling") {
		t.Error(out)
	}
	exported := curt("", "lists", "export", "refused_words")
	s.Kill()
	s = curttest.Start(t, options)
	refused("cas1no", "acmebnak", "rudest")
	if again := curt("", "lists", "export", "refused_words"); again != exported || !strings.Contains(again, "bingo* # ") {
		t.Errorf("%q, before %q", again, exported)
	}
	curt("", "lists", "remove", "refused_words", "~casino")
	if status := create("cas1no", "https://example.com/"); status != http.StatusCreated {
		t.Errorf("a removed word: %d", status)
	}
	if out := curt(exported, "lists", "import", "refused_words", "--reason=restored"); !strings.Contains(out, "added 1 entries") {
		t.Error(out)
	}
}
