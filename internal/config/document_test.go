package config_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"curt/internal/config"
)

func updating(t *testing.T) bool {
	t.Helper()
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write docs/configuration.md anew")
	for _, kv := range os.Environ() { // of whoever runs the tests: they would be settings
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "CURT_") {
			_ = os.Unsetenv(name) // it was there a moment ago
		}
	}
	m.Run()
}

const document = `# Configuration

<!-- Written by "make docs" from the declarations in internal/config/config.go. -->

Every setting of ` + "`curt serve`" + ` is a flag, an environment variable and a key of the
TOML file that ` + "`--config`" + ` or ` + "`CURT_CONFIG`" + ` names. Flags win over the environment,
which wins over the file. Relative paths start at the working directory.

Nothing is guessed. A value that makes no sense, a key or a ` + "`CURT_`" + ` variable that is
none, a flag that is given twice, and a variable that is set to nothing where that
means nothing stop the start with exit code 78 and a line that names the setting and
its value, before an address is bound or a folder made.

- ` + "`curt config print`" + ` shows the settings in effect and where each is set, as a file
  for ` + "`--config`" + `. Secrets, and URLs that have one, are not shown and have to be put in by hand.
- ` + "`curt config check`" + ` looks at every setting and uses each file, secret and address
  once: a line for each, exit code 78 if one is wrong. It leaves nothing behind, and
  does not disturb a server that runs.

In the file, texts, sizes and times are in quotes (` + "`\"64MiB\"`, `\"30d\"`, `\"5s\"`" + `), numbers
and ` + "`true` or `false`" + ` are not, and lists are ` + "`[\"a\", \"b\"]`" + ` where flags and variables
have ` + "`a,b`" + `. Flags are switched off with ` + "`=false`" + `.

| flag | variable | key | default | what |
|---|---|---|---|---|
%s
An address that is taken ends the start with exit code 1 instead, because it may be
free a moment later; so do a data folder that another server holds and a full disk.

` + "`CURT_SERVER`, `CURT_API_KEY` and `CURT_API_KEY_FILE`" + ` are for the commands that
talk to a server; ` + "`curt serve`" + ` knows and ignores them.
`

func TestDocumentIsCommitted(t *testing.T) {
	settings, err := config.Settings()
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, s := range settings {
		if s.Hidden {
			continue
		}
		byDefault := ""
		if s.Default != "" {
			byDefault = "`" + s.Default + "`"
		}
		fmt.Fprintf(&rows, "| `--%s` | `%s` | `%s` | %s | %s |\n", s.Flag, s.Variable, s.Key, byDefault, strings.ReplaceAll(s.Help, "|", `\|`))
	}
	text := fmt.Sprintf(document, rows.String())
	const name = "../../docs/configuration.md"
	if updating(t) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(committed) != text {
		t.Error("docs/configuration.md does not say what is declared: run make docs")
	}
}

func TestEverySettingIsDeclaredWhole(t *testing.T) {
	settings, err := config.Settings()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings {
		if want := "CURT_" + strings.ToUpper(s.Key); s.Variable != want {
			t.Errorf("--%s is %q in the environment, want %s", s.Flag, s.Variable, want)
		}
		if s.Help == "" && !s.Hidden {
			t.Errorf("--%s has no help", s.Flag)
		}
	}
}
