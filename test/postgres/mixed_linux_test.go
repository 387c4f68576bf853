package postgres_test

import (
	"fmt"
	"net/http"
	"testing"

	"curt.example/client"
	"curt/internal/testkit"
	"curt/test/internal/curttest"
)

// beforeFeeds is the last commit whose servers write changes without a kind.
const beforeFeeds = "a4d812c"

// TestVersionsHearOfEachOther runs a server of the version before feeds beside one of this version: each
// hears what the other changes, deletes, decides and bans.
func TestVersionsHearOfEachOther(t *testing.T) {
	testkit.Faults(t)
	t.Parallel()
	url := database(t)
	older := beginOf(t, 1, curttest.BuildOf(t, beforeFeeds), url)[0]
	newer := begin(t, 1, url)[0]
	for name, pair := range map[string][2]node{"older": {older, newer}, "newer": {newer, older}} {
		t.Run("the "+name+" one writes", func(t *testing.T) { hears(t, name, pair[0], pair[1]) })
	}
}

func hears(t *testing.T, name string, writer, reader node) {
	t.Helper()
	path := "/by-" + name
	await := func(what string, want int, to string) {
		t.Helper()
		soon(t, what, func() bool {
			status, location := reader.answers(t, path)
			return status == want && (to == "" || location == to)
		})
	}
	destination := func(n int) string { return fmt.Sprintf("https://%s.example/%d", name, n) }
	await("no link", http.StatusNotFound, "")
	l, err := writer.api.Create(t.Context(), client.NewLink{LongURL: destination(1), CustomAlias: path[1:]})
	if err != nil {
		t.Fatal(err)
	}
	await("a new link", http.StatusFound, destination(1))
	if _, err := writer.api.Update(t.Context(), l.ShortCode, map[string]any{"long_url": destination(2)}); err != nil {
		t.Fatal(err)
	}
	await("another destination", http.StatusFound, destination(2))
	if _, err := writer.api.Moderation.Decide(t.Context(), l.ShortCode, "blocked", "it phishes"); err != nil {
		t.Fatal(err)
	}
	await("a blocked link", http.StatusForbidden, "")
	if _, err := writer.api.Moderation.Decide(t.Context(), l.ShortCode, "clean", "it does not"); err != nil {
		t.Fatal(err)
	}
	await("a clean link", http.StatusFound, destination(2))
	if _, err := writer.api.Moderation.Ban(t.Context(), client.NewBan{Entity: client.Entity{Kind: "host", Name: name + ".example"}, Reason: "it phishes"}); err != nil {
		t.Fatal(err)
	}
	await("a banned host", http.StatusForbidden, "")
	if err := writer.api.Delete(t.Context(), l.ShortCode); err != nil {
		t.Fatal(err)
	}
	await("a deleted link", http.StatusGone, "")
}
