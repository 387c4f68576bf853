package deploy_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"curt/internal/config"
	"curt/test/internal/curttest"
)

const fleetFiles = root + "/deploy/fleet"

// TestEveryRoleIsDeployed: a role of the binary is in make fleet, in the compose file, in the chart
// and in the routes of the balancers.
func TestEveryRoleIsDeployed(t *testing.T) {
	t.Parallel()
	deployed := map[string]string{
		"make fleet":         textOf(t, "scripts/fleet", "deploy/fleet/supervisord.conf"),
		"the compose file":   textOf(t, "deploy/fleet/compose.yaml"),
		"the balancers":      textOf(t, "deploy/fleet/haproxy.cfg", "deploy/haproxy", "deploy/nginx", "deploy/caddy"),
		"the chart":          textOf(t, "deploy/helm/curt"),
		"the scrape targets": textOf(t, "deploy/fleet/prometheus.yml"),
	}
	for _, role := range config.Roles() {
		for where, text := range deployed {
			if !names(text, role) {
				t.Errorf("the role %s is not in %s", role, where)
			}
		}
		if settings := fleetSettings(t, role+".env"); settings["CURT_ROLE"] != role {
			t.Errorf("%s.env has CURT_ROLE=%s", role, settings["CURT_ROLE"])
		}
	}
	if names("redirect, workers", config.RoleWorker) {
		t.Error("the check finds a role that is not named")
	}
}

// names reports whether a text has a role as a word.
func names(text, role string) bool { return regexp.MustCompile(`\b` + role + `\b`).MatchString(text) }

// textOf joins files of the repository, and those of folders; a folder may be missing.
func textOf(t *testing.T, paths ...string) string {
	t.Helper()
	var all strings.Builder
	for _, p := range paths {
		err := filepath.WalkDir(filepath.Join(root, p), func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// fleetSettings reads a file of settings as compose does.
func fleetSettings(t *testing.T, name string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(fleetFiles, name))
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			setting, value, found := strings.Cut(line, "=")
			if !found || strings.ContainsAny(value, " \"'$") { // sh and compose would differ
				t.Errorf("%s: %s", name, line)
			}
			settings[setting] = value
		}
	}
	return settings
}

// fleetService is what the test reads of a service.
type fleetService struct {
	Image       string
	Build       map[string]string
	EnvFile     []string `yaml:"env_file"`
	Environment map[string]string
	Command     []string
	Volumes     []string
	Secrets     []string
	MemLimit    string `yaml:"mem_limit"`
	Healthcheck map[string]any
}

// TestFleetComposeFile has the schema of Compose judge the file. What it names is there, curt
// accepts the settings of its services, and every part has a limit, a health check and a version.
func TestFleetComposeFile(t *testing.T) {
	t.Parallel()
	judge := tool(t, "venv/bin/check-jsonschema", "make test installs it by scripts/venv")
	file, err := filepath.Abs(fleetFiles + "/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	output(t, root, judge, "--builtin-schema", "vendor.compose-spec", file)
	var compose struct {
		Services map[string]fleetService
		Secrets  map[string]any
	}
	if err := yaml.Unmarshal([]byte(fill(t, file)), &compose); err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`:v?\d+\.\d+(\.\d+)*(@sha256:[0-9a-f]{64})?$`)
	for name, s := range compose.Services {
		if s.MemLimit == "" || s.Healthcheck == nil && s.Image != "curt" { // whose image has one
			t.Errorf("%s has no limit or no health check", name)
		}
		if s.Build == nil && !version.MatchString(s.Image) {
			t.Errorf("%s: %s has no exact version", name, s.Image)
		}
		for _, secret := range s.Secrets {
			if compose.Secrets[secret] == nil {
				t.Errorf("%s: no secret %s", name, secret)
			}
		}
		for _, v := range s.Volumes {
			if source, _, _ := strings.Cut(v, ":"); strings.HasPrefix(source, ".") {
				if _, err := os.Stat(filepath.Join(fleetFiles, source)); err != nil {
					t.Error(err)
				}
			}
		}
		if s.Image == "curt" {
			accepts(t, name, s)
		}
	}
}

// accepts has curt check the settings of a service by themselves.
func accepts(t *testing.T, name string, s fleetService) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "admin_key")
	write(t, key, curttest.Key)
	check := exec.CommandContext(t.Context(), curttest.Binary(t), "config", "print")
	for _, file := range s.EnvFile {
		for setting, value := range fleetSettings(t, file) {
			check.Env = append(check.Env, setting+"="+strings.Replace(value, "/run/secrets/admin_key", key, 1))
		}
	}
	for setting, value := range s.Environment {
		check.Env = append(check.Env, setting+"="+value)
	}
	said, err := check.CombinedOutput()
	if err != nil || len(s.EnvFile) < 2 {
		t.Errorf("%s: curt refuses %q: %v\n%s", name, check.Env, err, said)
	}
}
