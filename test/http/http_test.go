package http_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"curt/test/internal/curttest"
	"curt/test/internal/script"
)

func TestMain(m *testing.M) { os.Exit(curttest.Main(m)) }

// TestScripts runs every script of this folder against a server of its own.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("*.http")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(name, ".http"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			s, err := script.Parse(string(text))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			script.Run(t, s, curttest.Start(t, curttest.Options{Env: s.Settings}))
		})
	}
}
