package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/pelletier/go-toml/v2"

	"curt/internal/config"
)

// tomlFile reads the settings of --config: the names of the flags with
// underscores. The environment wins over the file, and a name that no flag has
// stops the start.
func tomlFile(r io.Reader) (kong.Resolver, error) {
	values := map[string]any{}
	if err := toml.NewDecoder(r).Decode(&values); err != nil {
		return nil, &config.Error{Setting: "--config", Value: "FILE", Want: err.Error()}
	}
	return fileResolver{values: values}, nil
}

type fileResolver struct{ values map[string]any }

// Validate refuses names that are no setting of serve.
func (f fileResolver) Validate(app *kong.Application) error {
	known := map[string]bool{}
	for _, group := range app.AllFlags(false) {
		for _, flag := range group {
			known[fileKey(flag)] = true
		}
	}
	for _, command := range app.Leaves(false) {
		for _, group := range command.AllFlags(false) {
			for _, flag := range group {
				known[fileKey(flag)] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.values)) {
		if !known[name] {
			return &config.Error{Setting: name, Value: fmt.Sprint(f.values[name]), Want: "no such setting in the configuration file; see curt serve --help"}
		}
	}
	return nil
}

// Resolve returns the file's value for a flag, nil where there is none.
func (f fileResolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Envs {
		if _, ok := os.LookupEnv(env); ok {
			return nil, nil
		}
	}
	switch v := f.values[fileKey(flag)].(type) {
	case nil:
		return nil, nil
	case []any:
		parts := make([]string, len(v))
		for i, p := range v {
			parts[i] = fmt.Sprint(p)
		}
		return strings.Join(parts, ","), nil
	default:
		return fmt.Sprint(v), nil
	}
}

func fileKey(f *kong.Flag) string { return strings.ReplaceAll(f.Name, "-", "_") }
