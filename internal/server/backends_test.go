package server_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"curt/internal/config"
	"curt/internal/server"
	"curt/internal/settings"
)

// A folder that has anything of a server that ran, and no links, lost them: a start would make
// a new store, which answers 404 for what was acknowledged and gives codes out twice.
func TestAFolderThatLostItsLinksDoesNotStart(t *testing.T) {
	empty := func(path string) error { return os.Truncate(path, 0) }
	databases := []string{"curt.db", "clicks.db", "search.db"}
	for name, lost := range map[string]struct {
		lose  func(path string) error
		files []string
	}{
		"missing":                                   {os.Remove, databases[:1]},
		"empty":                                     {empty, databases[:1]},
		"every database missing":                    {os.Remove, databases},
		"every database empty":                      {empty, databases},
		"all but the click log missing":             {os.Remove, append(databases, "admin.key")},
		"all but the admin key missing":             {os.RemoveAll, append(databases, "clicks")},
		"databases empty, and the click log is not": {empty, append(databases, "admin.key")},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			cfg := onFolder(t, data)
			s, err := server.New(t.Context(), cfg, server.Options{Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatalf("a new folder: %v", err)
			}
			ended, end := context.WithCancel(t.Context())
			end()
			if err := s.Run(ended); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(data, "clicks", "0001790000000000.clicks"), []byte("a click"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, file := range lost.files {
				if err := lost.lose(filepath.Join(data, file)); err != nil {
					t.Fatal(err)
				}
			}
			_, err = server.New(t.Context(), cfg, server.Options{Log: slog.New(slog.DiscardHandler)})
			if wrong, ok := errors.AsType[*config.Error](err); !ok || wrong.Setting != "CURT_DATA" || !strings.Contains(wrong.Want, "its links are missing") {
				t.Fatalf("without its links: %v", err)
			}
			if info, err := os.Stat(filepath.Join(data, "curt.db")); err == nil && info.Size() > 0 {
				t.Error("the refused start made a new store")
			}
		})
	}
}

// A first start that was killed leaves empty files, and no sign of links: the next start goes on.
func TestAFirstStartThatWasKilledIsNoLoss(t *testing.T) {
	data := t.TempDir()
	for _, file := range []string{"curt.db", "clicks.db"} {
		if err := os.WriteFile(filepath.Join(data, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(data, "clicks"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := server.New(t.Context(), onFolder(t, data), server.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.Run(ended); err != nil {
		t.Fatal(err)
	}
}

// onFolder is a configuration that listens for nobody else.
func onFolder(t *testing.T, data string) (cfg config.Config) {
	t.Helper()
	p, err := kong.New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Parse([]string{"--data", data, "--listen", "127.0.0.1:0", "--admin-listen", ""}); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// A folder whose links are in a database does not start without CURT_LINKS: a new store would
// answer 404 for all of them. Nothing is made in the folder, and config check says the same.
func TestAFolderOfADatabaseDoesNotStartWithoutIt(t *testing.T) {
	var cfg config.Config
	p, err := kong.New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	if _, err := p.Parse([]string{"--data", data, "--listen", "127.0.0.1:0", "--admin-listen", "", "--base-url", "http://localhost"}); err != nil {
		t.Fatal(err)
	}
	elsewhere := cfg
	elsewhere.Links = "postgres://curt@127.0.0.1:1/curt?connect_timeout=1" // it is away: the folder is its all the same
	if _, err := server.New(t.Context(), elsewhere, server.Options{Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Fatal("a database that is not there was opened")
	}
	before, err := os.ReadDir(data)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(err error) bool {
		wrong, ok := errors.AsType[*config.Error](err)
		return ok && wrong.Setting == "CURT_DATA" && strings.Contains(wrong.Want, "are in a database, but CURT_LINKS is not set")
	}
	if _, err := server.New(t.Context(), cfg, server.Options{Log: slog.New(slog.DiscardHandler)}); !refused(err) {
		t.Errorf("the start: %v", err)
	}
	if !slices.ContainsFunc(settings.Check(t.Context(), cfg), func(c settings.Checked) bool { return refused(c.Err) }) {
		t.Error("config check finds nothing")
	}
	after, err := os.ReadDir(data)
	if err != nil || len(after) != len(before) {
		t.Errorf("%v became %v, %v", before, after, err)
	}
}

// Servers over one database have one admin key: who lets each make its own is told so.
func TestADatabaseWantsOneAdminKey(t *testing.T) {
	for links, want := range map[string]bool{config.SQLite: false, "postgres://curt@127.0.0.1:1/curt?connect_timeout=1": true} {
		var cfg config.Config
		p, err := kong.New(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Parse([]string{"--data", t.TempDir(), "--listen", "127.0.0.1:0", "--admin-listen", "", "--base-url", "http://localhost", "--links", links}); err != nil {
			t.Fatal(err)
		}
		told := slices.ContainsFunc(settings.Check(t.Context(), cfg), func(c settings.Checked) bool {
			return strings.Contains(c.What, "CURT_ADMIN_KEY is unset") && strings.Contains(c.What, "set CURT_ADMIN_KEY on each")
		})
		if told != want {
			t.Errorf("%s: told %v", links, told)
		}
	}
}

// Whatever a driver says of each of its attempts, operators read one line.
func TestADatabaseThatIsAwayIsOneLine(t *testing.T) {
	var cfg config.Config
	p, err := kong.New(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	away := "postgres://curt:hunter2@localhost:1,127.0.0.1:1/links?connect_timeout=1"
	if _, err := p.Parse([]string{"--data", t.TempDir(), "--listen", "127.0.0.1:0", "--admin-listen", "", "--links", away}); err != nil {
		t.Fatal(err)
	}
	_, err = server.New(t.Context(), cfg, server.Options{Log: slog.New(slog.DiscardHandler)})
	if err == nil || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "hunter2") || errors.As(err, new(*config.Error)) {
		t.Errorf("%v", err)
	}
}

// A wrong address of tables ends a start before it makes a folder.
func TestWrongTablesLeaveNoFolder(t *testing.T) {
	for _, links := range []string{"dynamodb://t9?region=eu-central-1", "dynamodb://table?region=a&region=b", "dynamodb://table?tables=x"} {
		var cfg config.Config
		p, err := kong.New(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		data := filepath.Join(t.TempDir(), "data")
		if _, err := p.Parse([]string{"--data", data, "--listen", "127.0.0.1:0", "--admin-listen", "", "--links", links, "--accounts", "postgres://127.0.0.1:1/accounts"}); err != nil {
			t.Fatal(err)
		}
		_, err = server.New(t.Context(), cfg, server.Options{Log: slog.New(slog.DiscardHandler)})
		if wrong, ok := errors.AsType[*config.Error](err); !ok || wrong.Setting != "CURT_LINKS" || strings.Contains(err.Error(), "invalid link") {
			t.Errorf("%s: %v", links, err)
		}
		if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: there is a folder, %v", links, err)
		}
	}
}
