package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"curt/test/internal/curttest"
)

// TestComposeFile has the published schema of Compose judge the file. The control is the
// file with a mistake in it: each of these starts a service that is not what was meant.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	judge := tool(t, "venv/bin/check-jsonschema", "make test installs it by scripts/venv")
	file, err := filepath.Abs(root + "/deploy/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	schema := []string{"--builtin-schema", "vendor.compose-spec"}
	output(t, root, judge, append(schema, file)...)
	for right, wrong := range map[string]string{
		"read_only: true": "readonly: true",
		"cap_drop: [ALL]": "cap_drop: ALL",
	} {
		text := fill(t, file, right, wrong)
		broken := filepath.Join(t.TempDir(), "compose.yaml")
		write(t, broken, text)
		if said, err := run(t, root, judge, append(schema, broken)...); err == nil || !strings.Contains(said, "Schema validation errors") {
			t.Errorf("%s passes: %v\n%s", wrong, err, said)
		}
	}
	checkNamed(t, file)
}

// checkNamed looks for what the file names: folders beside it, and settings of curt.
func checkNamed(t *testing.T, file string) {
	t.Helper()
	var compose struct {
		Services map[string]struct {
			Build       struct{ Context, Dockerfile string }
			Environment map[string]string
			Volumes     []string
		}
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, &compose)
	}
	if err != nil {
		t.Fatal(err)
	}
	curt := compose.Services["curt"]
	named := []string{filepath.Join(curt.Build.Context, curt.Build.Dockerfile)}
	for _, s := range compose.Services {
		for _, v := range s.Volumes {
			if source, _, _ := strings.Cut(v, ":"); strings.HasPrefix(source, ".") {
				named = append(named, source)
			}
		}
	}
	for _, name := range named {
		if _, err := os.Stat(filepath.Join(filepath.Dir(file), name)); err != nil {
			t.Error(err)
		}
	}
	check := exec.CommandContext(t.Context(), curttest.Binary(t), "config", "print", "--data="+t.TempDir())
	unset := regexp.MustCompile(`\$\{\w+:-([^}]*)\}`) // by whoever runs it
	for name, value := range curt.Environment {
		check.Env = append(check.Env, name+"="+unset.ReplaceAllString(value, "$1"))
	}
	if said, err := check.CombinedOutput(); err != nil || len(named) < 2 || len(check.Env) < 3 {
		t.Errorf("curt does not know its settings %q: %v\n%s", check.Env, err, said)
	}
}
