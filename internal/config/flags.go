package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// Flags is embedded by the commands that take settings. Kong fills it; the hook
// below sees to the file and refuses what nobody would read.
type Flags struct {
	File string `name:"config" env:"CURT_CONFIG" type:"path" help:"TOML file of settings, named like the flags with underscores."`
	Config

	Origins Origins `kong:"-"`
}

// Origins says where settings come from, by the names of their variables. What is
// missing has its default.
type Origins map[string]Origin

// Origin is where one setting comes from.
type Origin struct {
	Kind     string // flag, env or file
	Location string // the flag, or the file and its line; "" for env
}

// BeforeReset runs when kong has read the arguments, and before it reads the
// environment. What it returns for a wrong setting is a [*Error], or several joined.
func (f *Flags) BeforeReset(ctx *kong.Context) error {
	if ctx.Selected() == nil {
		return nil
	}
	f.Origins = Origins{}
	var p problems
	settings := map[string]Setting{}
	for _, flag := range ctx.Selected().Flags {
		if s := settingOf(flag); s.Variable != "" {
			settings[s.Flag] = s
		}
	}
	f.given(ctx, settings, &p)
	p = append(p, f.environment(ctx, settings)...)
	name, err := fileName(ctx, settings["config"])
	if err != nil {
		return errors.Join(append(p, err)...)
	}
	delete(settings, "config")
	if name != "" {
		file, errs := readFile(name, settings)
		p = append(p, errs...)
		ctx.AddResolver(f.resolver(file))
		for variable, entry := range file {
			if _, ok := f.Origins[variable]; !ok {
				f.Origins[variable] = Origin{"file", entry.place}
			}
		}
	}
	return errors.Join(p...)
}

// given notes the flags of the command line. One that is given twice says two
// things, unless it is a list.
func (f *Flags) given(ctx *kong.Context, settings map[string]Setting, p *problems) {
	for _, path := range ctx.Path {
		if path.Flag == nil {
			continue
		}
		s, ok := settings[path.Flag.Name]
		if !ok {
			continue
		}
		value := path.Flag.Value
		shown := redact(fmt.Sprint(ctx.Value(path)))
		if s.Secret {
			shown = Hidden
		}
		_, twice := f.Origins[s.Variable]
		f.Origins[s.Variable] = Origin{"flag", "set by --" + s.Flag}
		switch {
		case twice && !value.IsSlice():
			*p = append(*p, &Error{Setting: "--" + s.Flag, Value: shown, Want: "set twice"})
		case !s.empty && slices.Contains(arguments(ctx.Args, s.Flag), ""):
			*p = append(*p, &Error{Setting: "--" + s.Flag, Value: "", Want: "set, but empty; remove it or set a value"})
		case !twice && value.IsSlice():
			for _, text := range arguments(ctx.Args, s.Flag) {
				if hollow(text) {
					*p = append(*p, &Error{Setting: "--" + s.Flag, Value: redact(text), Want: tooManyCommas})
				}
			}
		}
	}
}

// arguments returns what a flag is set to, each time that it is. The arguments are asked,
// because kong makes an empty path the working directory.
func arguments(args []string, flag string) (values []string) {
	for i, a := range args {
		if value, ok := strings.CutPrefix(a, "--"+flag+"="); ok {
			values = append(values, value)
		} else if a == "--"+flag && i+1 < len(args) {
			values = append(values, args[i+1])
		}
	}
	return values
}

const tooManyCommas = "empty entry; remove the extra comma"

// hollow reports whether a list has an entry that is empty. Kong passes over the last.
func hollow(text string) bool {
	return text != "" && slices.Contains(kong.SplitEscaped(text+",.", ','), "")
}

// environment checks the values there, and that no variable of ours is misspelt: it
// would be ignored, and with it what the operator wanted.
func (f *Flags) environment(ctx *kong.Context, settings map[string]Setting) []error {
	var p problems
	known := variables(ctx.Model)
	for _, kv := range slices.Sorted(slices.Values(os.Environ())) {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "CURT_") || slices.Contains(known, name) {
			continue
		}
		p = append(p, unknown(name, value, known))
	}
	for _, flag := range ctx.Selected().Flags {
		s, ok := settings[flag.Name]
		if !ok {
			continue
		}
		if value, ok := s.environment(); ok {
			if err := s.check(value); err != nil {
				p = append(p, err)
			}
			if _, ok := f.Origins[s.Variable]; !ok {
				f.Origins[s.Variable] = Origin{Kind: "env"}
			}
		}
	}
	return p
}

// variables are all that any command reads.
func variables(app *kong.Application) []string {
	var names []string
	for _, command := range append(app.Leaves(false), app.Node) {
		for _, group := range command.AllFlags(false) {
			for _, flag := range group {
				names = append(names, flag.Envs...)
			}
		}
	}
	return names
}

// fileName finds the file before kong does, because the file has to be read first.
func fileName(ctx *kong.Context, s Setting) (string, error) {
	for _, path := range slices.Backward(ctx.Path) {
		if path.Flag != nil && path.Flag.Name == s.Flag {
			return ctx.Value(path).String(), nil
		}
	}
	name, ok := s.environment()
	if !ok {
		return "", nil
	}
	if name == "" {
		return "", nil // told by environment
	}
	return kong.ExpandPath(name), nil
}

// resolver hands the file's values to kong, where neither a flag nor the environment
// has said something else.
func (f *Flags) resolver(file map[string]entry) kong.ResolverFunc {
	return func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		for _, variable := range flag.Envs {
			if _, ok := os.LookupEnv(variable); ok {
				return nil, nil
			}
			if e, ok := file[variable]; ok && !e.unset {
				return e.text, nil
			}
		}
		return nil, nil
	}
}

// Wrong returns what [Config.Validate] does, joined, each with its origin.
func (f *Flags) Wrong() error {
	errs := f.Validate()
	for _, err := range errs {
		_ = f.Explain(err) // the error is changed in place
	}
	return errors.Join(errs...)
}

// Explain completes an [*Error] with where the setting comes from, and returns it.
func (f *Flags) Explain(err error) error {
	var e *Error
	if errors.As(err, &e) && e.Origin == "" {
		e.Origin = f.Origins[e.Setting].Location
	}
	return err
}

// WrongFlag returns the [*Error] behind an error of kong about the value of a
// setting's flag; nil if it is about something else, such as an unknown flag.
func WrongFlag(err error, args []string) error {
	settings, broken := Settings()
	if broken != nil {
		return broken
	}
	said, _ := Plain(err.Error())
	for _, s := range settings {
		want, ok := strings.CutPrefix(said, "--"+s.Flag+": ")
		if !ok {
			continue
		}
		e := &Error{Setting: "--" + s.Flag, Want: want}
		if values := arguments(args, s.Flag); len(values) > 0 {
			e.Value = values[len(values)-1]
		}
		if s.Secret {
			e.Value, e.Want = Hidden, "expected a value"
		}
		return e
	}
	return nil
}

// Plain says in plain words what the parser of flags says of a value that has the wrong type, such as "--limit: expected a
// valid 64 bit int but got", and returns the value, quoted. Another text stays as it is, and has no value.
func Plain(text string) (said, value string) {
	head, got, found := strings.Cut(text, " but got ")
	value, err := strconv.QuotedPrefix(got)
	if !found || err != nil {
		return text, ""
	}
	for _, is := range []struct{ begins, ends, plain string }{
		{"expected a valid ", " bit int", "expected a whole number"},
		{"expected a valid ", " bit uint", "expected a whole number, 0 or more"},
		{"expected a float", "", "expected a number"},
		{"expected duration", "", "expected a duration, such as 30s or 24h"},
		{"bool value must be ", "", "expected true or false"},
	} {
		if at := strings.Index(head, is.begins); at >= 0 && strings.HasSuffix(head, is.ends) {
			return head[:at] + is.plain, value
		}
	}
	return text, ""
}
