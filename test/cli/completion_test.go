package cli_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"curt/test/internal/curttest"
)

// shells are those that `curt completion` writes for. ask is a script of the shell that
// loads the file $1 as the file itself says, and prints what the TAB key offers after the
// line $2, each on a line.
func shells() map[string]struct{ file, ask string } {
	return map[string]struct{ file, ask string }{
		"bash": {"curt.bash", `. "$1"
			line=$2; read -ra COMP_WORDS <<< "$line"; [[ $line == *" " ]] && COMP_WORDS+=("")
			COMP_LINE=$line COMP_POINT=${#line} COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
			how=($(complete -p curt)) # complete … -F FUNCTION curt
			"${how[@]: -2:1}" || true
			printf '%s\n' "${COMPREPLY[@]}"`},
		// fish says what it would offer, with a TAB and the help behind each.
		"fish": {"curt.fish", `source $argv[1]; complete -C "$argv[2]" | string split -f1 \t; or true`},
		// zsh completes only while a line is edited: here in a terminal of its own. What
		// the system of completion is given to add is written down, then nothing is added.
		"zsh": {"_curt", `zmodload zsh/zpty
			zpty inner zsh -f -i
			inside="PROMPT=; fpath=(${1:h} \$fpath); autoload -Uz compinit; compinit -C -d ${1:h}/dump; rm -f ${1:h}/offered
				compadd() {
					[[ \" \${argv[1,(i)(-|--)]} \" == *\ -(O|A|D)\ * ]] && { builtin compadd \"\$@\"; return }
					local -a offered; builtin compadd -O offered \"\$@\"
					(( \$#offered )) && print -rl -- \$offered >> ${1:h}/offered
				}
				comppostfuncs=(exit); bindkey '^I' complete-word; print rea''dy"
			print -r -- $inside > ${1:h}/inside
			zpty -w inner "source ${1:h}/inside"
			while zpty -r inner said; do [[ $said == *ready* ]] && break; done
			zpty -w -n inner "$2"$'\t'
			while zpty -r inner said; do :; done
			[[ -e ${1:h}/offered ]] && cat ${1:h}/offered; true`},
	}
}

// TestCompletion presses TAB in each shell.
func TestCompletion(t *testing.T) {
	t.Parallel()
	lines := map[string][]string{
		"curt lin":                   {"links"},
		"curt links d":               {"delete", "disable"},
		"curt links disable --d":     {"--destination", "--dry-run"},
		"curt shorten --tag x --ded": {"--dedupe"},
		"curt config print --lan":    {"--lane"},
		"curt keys rot":              {"rotate"},
		"curt completion --he":       {"--help"},
		"curt completion z":          {"zsh"},
		"curt export to":             {"totals"},
		"curt nonsense l":            {"licenses", "links", "lists"},
		"curt --server":              nil,
	}
	for shell, s := range shells() {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(shell)
			if err != nil {
				curttest.Need(t, shell+" (apt-get install "+shell+")")
			}
			script, err := exec.CommandContext(t.Context(), curttest.Binary(t), "completion", shell).Output()
			file := filepath.Join(t.TempDir(), s.file)
			if err := errors.Join(err, os.WriteFile(file, script, 0o600)); err != nil {
				t.Fatal(err)
			}
			for line, want := range lines {
				if got := pressTab(t, path, file, s.ask, line); !slices.Equal(got, want) {
					t.Errorf("%q completes to %q, want %q", line, got, want)
				}
			}
			all := pressTab(t, path, file, s.ask, "curt ")
			for _, want := range []string{"serve", "doctor", "links", "completion"} {
				if !slices.Contains(all, want) {
					t.Errorf("the commands are %q, without %s", all, want)
				}
			}
		})
	}
}

// pressTab returns what a shell offers, by name.
func pressTab(t *testing.T, shell, file, ask, line string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	args := []string{"--norc", "-c", ask, "bash", file, line}
	switch filepath.Base(shell) {
	case "zsh":
		args = []string{"-f", "-c", ask, "zsh", file, line}
	case "fish":
		args = []string{"--no-config", "-c", ask, file, line}
	}
	cmd := exec.CommandContext(ctx, shell, args...)
	cmd.Env = append(os.Environ(), "TERM=dumb", "HOME="+filepath.Dir(file))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", shell, line, err, out)
	}
	offered := strings.Fields(string(out))
	slices.Sort(offered)
	return slices.Compact(offered)
}
