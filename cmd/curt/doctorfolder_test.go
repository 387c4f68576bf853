package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"curt.example/client"
)

// inhabited makes the folder of a server that had links, visitors and a stop, all on one day.
func inhabited(t *testing.T) string {
	t.Helper()
	for {
		day := time.Now().UTC().YearDay()
		kept := filepath.Join(t.TempDir(), "data")
		t.Run("a life", func(t *testing.T) {
			_ = t.TempDir() // the first is removed last: behind the copy
			var folder string
			t.Cleanup(func() { copied(t, kept, folder) }) // behind the server's end
			var address string
			address, folder = serving(t)
			live(t, address, folder)
		})
		if t.Failed() || time.Now().UTC().YearDay() == day {
			return kept
		}
	}
}

// copied copies a data folder, with the modes that a server gives its files.
func copied(t *testing.T, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"admin.key", "curt.db", "clicks.db", "search.db"} {
		if err := os.Chmod(filepath.Join(to, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// logged waits until clicks are in the log.
func logged(t *testing.T, folder string) {
	t.Helper()
	for {
		segments, err := filepath.Glob(filepath.Join(folder, "clicks", "*.clicks"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range segments {
			if info, err := os.Stat(name); err == nil && info.Size() > 0 {
				return
			}
		}
		select {
		case <-t.Context().Done():
			t.Fatal(context.Cause(t.Context()))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// live makes links and visits them.
func live(t *testing.T, address, folder string) {
	t.Helper()
	api := admin(t, address, folder)
	visit := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for i := range 5 {
		alias := ""
		if i > 2 {
			alias = fmt.Sprint("alias-", i)
		}
		l, err := api.Create(t.Context(), client.NewLink{LongURL: fmt.Sprintf("https://host-%d.example/", i), CustomAlias: alias})
		if err != nil {
			t.Fatal(err)
		}
		for range i + 1 {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				req, err := http.NewRequestWithContext(t.Context(), method, address+"/"+l.ShortCode, nil)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := visit.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = answer.Body.Close()
			}
		}
		if i == 0 {
			logged(t, folder) // so that the log has a second block
		}
	}
	if _, err := api.Moderation.Decide(t.Context(), "alias-3", "warn", "test"); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Moderation.Ban(t.Context(), client.NewBan{Entity: client.Entity{Kind: "link", Name: "alias-4"}, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	if answer, err := visit.Get(address + "/nobody"); err == nil {
		_ = answer.Body.Close()
	}
	counted(t, api, "alias-4", 5)
}

// admin returns a client with the admin key of a server's folder.
func admin(t *testing.T, address, folder string) *client.Client {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(folder, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(address, client.WithKey(strings.TrimSpace(string(key))))
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// counted waits until the statistics of a link have its clicks.
func counted(t *testing.T, api *client.Client, code string, clicks uint64) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		s, err := api.Stats(t.Context(), code, client.StatsQuery{})
		if err == nil && s.TotalClicks == clicks {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("counted %d clicks of %d: %v", s.TotalClicks, clicks, err)
		}
	}
}
