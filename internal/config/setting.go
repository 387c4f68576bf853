package config

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// Setting is one field of [Config], as its tags declare it.
type Setting struct {
	Flag     string // without the dashes
	Variable string
	Key      string // in the file
	Default  string // "" = none
	Help     string
	Secret   bool
	Hidden   bool // for tests; shown nowhere

	empty bool // may be set to nothing
	flag  *kong.Flag
}

// Settings returns every setting, in the order of [Config].
func Settings() ([]Setting, error) {
	parser, err := kong.New(&Config{}, kong.Name("curt"), kong.NoDefaultHelp())
	if err != nil {
		return nil, fmt.Errorf("read the declarations of settings: %w", err)
	}
	var all []Setting
	for _, f := range parser.Model.Flags {
		all = append(all, settingOf(f))
	}
	return all, nil
}

func settingOf(f *kong.Flag) Setting {
	return Setting{
		Flag: f.Name, Variable: strings.Join(f.Envs, " "), Key: strings.ReplaceAll(f.Name, "-", "_"),
		Default: f.Default, Help: f.Help, Secret: f.Tag.Has("secret"), Hidden: f.Hidden,
		empty: f.Tag.Has("empty"), flag: f,
	}
}

// check reads a value as kong will and drops the result: kong's own error names the
// flag, wherever the value stands, and shows secrets.
func (s Setting) check(text string) error {
	shown := redact(text)
	if s.Secret {
		shown = Hidden
	}
	wrong := func(want string) error { return &Error{Setting: s.Variable, Value: shown, Want: want} }
	if text == "" && !s.empty {
		return wrong("set, but empty; unset it or set a value")
	}
	if strings.ContainsRune(text, 0) {
		return wrong("expected text without NUL")
	}
	if !utf8.ValidString(text) { // which the parser would replace by another text
		return wrong("expected text in UTF-8")
	}
	if s.flag.Target.Kind() == reflect.Slice && hollow(text) {
		return wrong(tooManyCommas)
	}
	scan := kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: text})
	if err := s.flag.Parse(scan, reflect.New(s.flag.Target.Type()).Elem()); err != nil {
		said, _ := Plain(err.Error())
		return wrong(strings.TrimPrefix(said, "--"+s.Flag+": "))
	}
	return nil
}

// environment returns the setting's value there.
func (s Setting) environment() (string, bool) {
	if s.Variable == "" {
		return "", false
	}
	return os.LookupEnv(s.Variable)
}
