package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Completion prints a completion script.
type Completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints a script with all commands, flags and values of flags, so that completing
// starts no program.
func (c *Completion) Run(command *kong.Context, t Terminal) error {
	words := completions(command.Model.Node)
	script := bashScript
	switch c.Shell {
	case "zsh":
		script = zshScript
	case "fish":
		script = fishScript
	}
	_, err := io.WriteString(t.Out, script(words))
	return err
}

// place is a path of commands, such as "links list", with the words that may follow it.
type place struct {
	path  string
	words []word // commands and values, then flags, each by name
}

// word is a command, a value of an argument, or a flag, with its help.
type word struct{ text, help string }

// completions lists every place of the command line, the top first.
func completions(top *kong.Node) []place {
	var all []place
	var walk func(n *kong.Node, path []string)
	walk = func(n *kong.Node, path []string) {
		p := place{path: strings.Join(path, " ")}
		for _, child := range n.Children {
			if !child.Hidden {
				p.words = append(p.words, word{child.Name, child.Help})
			}
		}
		for _, argument := range n.Positional {
			if argument.Enum != "" {
				for text := range strings.SplitSeq(argument.Enum, ",") {
					p.words = append(p.words, word{text, argument.Help})
				}
			}
		}
		for _, group := range n.AllFlags(true) {
			for _, f := range group {
				p.words = append(p.words, word{"--" + f.Name, f.Help})
			}
		}
		slices.SortStableFunc(p.words, func(a, b word) int {
			return cmp.Or(cmp.Compare(strings.Count(a.text[:2], "-"), strings.Count(b.text[:2], "-")), strings.Compare(a.text, b.text))
		})
		all = append(all, p)
		for _, child := range n.Children {
			if !child.Hidden {
				walk(child, append(slices.Clone(path), child.Name))
			}
		}
	}
	walk(top, nil)
	return all
}

// texts are the words of a place without their help.
func (p place) texts() string {
	texts := make([]string, len(p.words))
	for i, w := range p.words {
		texts[i] = w.text
	}
	return strings.Join(texts, " ")
}

// bashScript walks the words before the cursor to the last command among them. Other words
// are completed as file names.
func bashScript(places []place) string {
	var b strings.Builder
	b.WriteString("# Completion of curt for bash: source it, or put it into /etc/bash_completion.d.\n_curt() {\n" +
		"  local cur=${COMP_WORDS[COMP_CWORD]} path= words= next w i\n" +
		"  _curt_words\n" +
		"  for ((i = 1; i < COMP_CWORD; i++)); do\n" +
		"    w=${COMP_WORDS[i]}\n    [[ $w == -* ]] && continue\n" +
		"    [[ \" $words \" == *\" $w \"* ]] || continue\n" +
		"    path=\"${path:+$path }$w\"\n    _curt_words\n  done\n" +
		"  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n" +
		"_curt_words() {\n  case $path in\n")
	for _, p := range places {
		fmt.Fprintf(&b, "  %q) words=%q ;;\n", p.path, p.texts())
	}
	b.WriteString("  esac\n}\ncomplete -o default -F _curt curt\n")
	return b.String()
}

// zshScript does the same with descriptions.
func zshScript(places []place) string {
	var b strings.Builder
	b.WriteString("#compdef curt\n# Completion of curt for zsh: put it into a folder of $fpath as _curt.\n_curt() {\n" +
		"  local path_= w i\n  local -a found\n  _curt_words\n" +
		"  for ((i = 2; i < CURRENT; i++)); do\n" +
		"    w=${words[i]}\n    [[ $w == -* ]] && continue\n" +
		"    (( ${found[(I)${(b)w}:*]} )) || continue\n" +
		"    path_=\"${path_:+$path_ }$w\"\n    _curt_words\n  done\n" +
		"  _describe curt found || _files\n}\n" +
		"_curt_words() {\n  case $path_ in\n")
	for _, p := range places {
		fmt.Fprintf(&b, "  %s) found=(\n", single(p.path))
		for _, w := range p.words {
			fmt.Fprintf(&b, "    %s\n", single(strings.ReplaceAll(w.text, ":", `\:`)+":"+firstSentence(w.help)))
		}
		b.WriteString("  ) ;;\n")
	}
	b.WriteString("  esac\n}\nif [ \"$funcstack[1]\" = _curt ]; then _curt \"$@\"; else compdef _curt curt; fi\n")
	return b.String()
}

// fishScript has a line for each word, with the condition under which it is offered.
func fishScript(places []place) string {
	var b strings.Builder
	b.WriteString("# Completion of curt for fish: put it into ~/.config/fish/completions/curt.fish.\n" +
		"function __curt_at\n  set -l path\n  set -l places " + fishPlaces(places) + "\n" +
		"  for w in (commandline -opc)[2..]\n    string match -q -- '-*' $w; and continue\n" +
		"    set -l next (string join ' ' -- $path $w)\n    contains -- $next $places; and set path $path $w\n  end\n" +
		"  test \"$path\" = \"$argv\"\nend\ncomplete -c curt -f\n")
	for _, p := range places {
		for _, w := range p.words {
			name, isFlag := strings.CutPrefix(w.text, "--")
			option := "-a"
			if isFlag {
				option = "-l"
			}
			fmt.Fprintf(&b, "complete -c curt -n %s %s %s -d %s\n", single("__curt_at "+p.path), option, name, single(firstSentence(w.help)))
		}
	}
	return b.String()
}

func fishPlaces(places []place) string {
	texts := make([]string, len(places))
	for i, p := range places {
		texts[i] = single(p.path)
	}
	return strings.Join(texts, " ")
}

// single quotes text for all three shells. Help texts have no quotes or backslashes; they would
// be replaced.
func single(text string) string {
	return "'" + strings.NewReplacer("'", "’", `\:`, `\:`, `\`, "/").Replace(text) + "'"
}

// firstSentence keeps a menu's lines short.
func firstSentence(help string) string {
	sentence, _, _ := strings.Cut(help, ". ")
	return Truncate(strings.TrimSuffix(sentence, "."), 70)
}
