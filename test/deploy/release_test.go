package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// releaseEnv asks for what make release-check proves: builds for every platform.
const releaseEnv = "CURT_TEST_RELEASE"

// TestReleaseBuilds makes the builds of .goreleaser.yaml with its flags; each binary is
// within its bound, and none needs a library.
func TestReleaseBuilds(t *testing.T) {
	if os.Getenv(releaseEnv) == "" {
		t.Skip("make release-check does this")
	}
	var file struct {
		Builds []struct {
			Main    string
			Env     []string
			Flags   []string
			Ldflags []string
			Targets []string
		}
	}
	text, err := os.ReadFile(root + "/.goreleaser.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil || len(file.Builds) != 1 {
		t.Fatalf("%d builds, %v", len(file.Builds), err)
	}
	b := file.Builds[0]
	for _, want := range []string{"linux_amd64", "linux_arm64", "darwin_arm64"} {
		i := slices.IndexFunc(b.Targets, func(target string) bool { return strings.HasPrefix(target, want) })
		if i < 0 {
			t.Errorf("nothing is built for %s", want)
			continue
		}
		system, machine, _ := strings.Cut(want, "_")
		binary := filepath.Join(t.TempDir(), "curt")
		flags := strings.ReplaceAll(strings.Join(b.Ldflags, " "), "{{ .Version }}", "0.1.0")
		cmd := exec.CommandContext(t.Context(), "go", append(append([]string{"build"}, b.Flags...), "-ldflags", flags, "-o", binary, b.Main)...)
		cmd.Dir = root
		cmd.Env = append(append(os.Environ(), "GOOS="+system, "GOARCH="+machine), b.Env...)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", want, err, said)
		}
		info, err := os.Stat(binary)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.1f MB", want, float64(info.Size())/1e6)
		if info.Size() > 40<<20 {
			t.Errorf("%s has %d bytes", want, info.Size())
		}
	}
}
