package server_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"curt/internal/config"
	"curt/internal/server"
)

// A folder that counted clicks and has no links lost them: a start would make a new store,
// which answers 404 for what was acknowledged and gives codes out twice.
func TestAFolderThatLostItsLinksDoesNotStart(t *testing.T) {
	for name, lose := range map[string]func(curt string) error{
		"missing": os.Remove,
		"empty":   func(curt string) error { return os.Truncate(curt, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			var cfg config.Config
			p, err := kong.New(&cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Parse([]string{"--data", data, "--listen", "127.0.0.1:0", "--admin-listen", ""}); err != nil {
				t.Fatal(err)
			}
			s, err := server.New(t.Context(), cfg, server.Options{Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatalf("a new folder: %v", err)
			}
			ended, end := context.WithCancel(t.Context())
			end()
			if err := s.Run(ended); err != nil {
				t.Fatal(err)
			}
			curt := filepath.Join(data, "curt.db")
			if err := lose(curt); err != nil {
				t.Fatal(err)
			}
			_, err = server.New(t.Context(), cfg, server.Options{Log: slog.New(slog.DiscardHandler)})
			if wrong, ok := errors.AsType[*config.Error](err); !ok || wrong.Setting != "CURT_DATA" || !strings.Contains(wrong.Want, "its links are gone") {
				t.Fatalf("without its links: %v", err)
			}
			if info, err := os.Stat(curt); err == nil && info.Size() > 0 {
				t.Error("the refused start made a new store")
			}
		})
	}
}
