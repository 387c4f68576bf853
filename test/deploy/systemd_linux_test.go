package deploy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"curt/test/internal/curttest"
)

// TestUnits has systemd's own tool check the units, and rate how much of the system the
// service could reach: 0 is nothing, 100 all. Most services of Debian are above 90.
func TestUnits(t *testing.T) {
	t.Parallel()
	analyze, dir := tool(t, "systemd-analyze", "apt-get install systemd"), t.TempDir()
	for _, name := range []string{"curt.service", "curt.socket"} {
		text, err := os.ReadFile(filepath.Join(root, "deploy/systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		// The tool wants the program to be there.
		binary, err := filepath.Abs(curttest.Binary(t))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), strings.ReplaceAll(string(text), "/usr/local/bin/curt", binary))
	}
	service, socket := filepath.Join(dir, "curt.service"), filepath.Join(dir, "curt.socket")
	if said := output(t, dir, analyze, "verify", "--man=no", service, socket); strings.Contains(said, dir) {
		t.Errorf("systemd says\n%s", said)
	}
	output(t, dir, analyze, "security", "--offline=true", "--threshold=20", "--no-pager", service)
}
