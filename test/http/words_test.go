package http_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"curt/test/internal/curttest"
)

// TestWords changes the words of a running server. The answer says which rule stands
// against an alias, and nothing else of the lists.
func TestWords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keep, never := filepath.Join(dir, "keep.txt"), filepath.Join(dir, "never.txt")
	put := func(path, text string) {
		t.Helper()
		curttest.Replace(t, path, text)
	}
	put(keep, "press\n")
	put(never, "~paypal\nrude*\n")
	s := curttest.Start(t, curttest.Options{Env: []string{"CURT_RESERVED_WORDS=" + keep, "CURT_REFUSED_WORDS=" + never}})
	create := func(alias string) curttest.Answer {
		return asAdmin(t, s, "POST", "/api/v1/links", fmt.Sprintf(`{"long_url":"https://example.com/","custom_alias":%q}`, alias))
	}
	for alias, want := range map[string]string{"Press": "slug-reserved", "admin": "slug-reserved", "PayPaI": "slug-refused", "rudest": "slug-refused"} {
		a := create(alias)
		if body := string(a.Body); a.Status != http.StatusConflict || !strings.Contains(body, `"type":"/problems/`+want+`"`) || strings.Contains(body, "keep") || strings.Contains(body, "never") {
			t.Errorf("%s: %d %s", alias, a.Status, a.Body)
		}
	}
	if a := create("fine"); a.Status != http.StatusCreated {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	put(never, "fine-too\n")
	if err := syscall.Kill(s.PID, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	await(t, http.StatusCreated, func() curttest.Answer { return create("rudest") })
	if a := create("FINE-TOO"); a.Status != http.StatusConflict {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
