// Package browser runs scripts that drive headless Chromium, as Debian packs it, by
// playwright-core, with axe-core as the judge. page.mjs is what the scripts share.
package browser

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"curt/test/internal/curttest"
)

// Program returns the path of Chromium, without which the test cannot run.
func Program(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		curttest.Need(t, "chromium (apt-get install chromium)")
	}
	return program
}

// Pictures is the folder for screenshots; "" = none are wanted.
func Pictures() string { return os.Getenv("CURT_TEST_PICTURES") }

// Run runs a script with Node.js: in is its standard input as JSON, and its standard
// output fills out. The test ends when the script fails.
func Run(t *testing.T, script string, in, out any) {
	t.Helper()
	packages, err := filepath.Abs(filepath.Join("..", "..", "bin", "tools", "npm", "test", "web"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(packages, "installed.json")); err != nil {
		curttest.Need(t, "playwright-core and axe-core (make test installs them by scripts/npm)")
	}
	plan, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", script) //nolint:gosec // the script is a test's own
	cmd.Env = append(os.Environ(), "CURT_NPM="+packages)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(plan), os.Stderr
	said, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(said, out); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}
