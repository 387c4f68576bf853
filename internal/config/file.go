package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// maxFile bounds what is read of a file of settings or of a secret.
const maxFile = 1 << 20

// entry is one value of the file.
type entry struct {
	text  string // as a flag would have it
	place string
	unset bool // an empty list
}

// ReadFile reads a small file that a setting names. Devices, pipes and folders are
// refused: a start must never wait for somebody to write.
func ReadFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read the file of a setting: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read the file of a setting: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s is larger than 1 MiB", name)
	}
	return text, nil
}

// readFile reads the file of settings and returns its values by variable. Keys that
// are no setting, values of another type, and anything that TOML refuses, keys that
// stand there twice among it, are errors.
func readFile(name string, settings map[string]Setting) (map[string]entry, []error) {
	wrong := func(want string) []error { return []error{&Error{Setting: "CURT_CONFIG", Value: name, Want: want}} }
	text, err := ReadFile(name)
	if err != nil {
		return nil, wrong(err.Error())
	}
	values := map[string]any{}
	if err := toml.Unmarshal(text, &values); err != nil {
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			row, _ := at.Position()
			return nil, wrong(fmt.Sprintf("line %d: %v", row, err))
		}
		return nil, wrong(err.Error())
	}
	byKey := map[string]Setting{}
	for _, s := range settings {
		byKey[s.Key] = s
	}
	var p problems
	entries := map[string]entry{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		place := "set in " + name + ", line " + strconv.Itoa(lineOf(string(text), key))
		s, ok := byKey[key]
		if !ok {
			e := unknown(key, fmt.Sprint(values[key]), slices.Collect(maps.Keys(byKey)))
			e.Origin = place
			p = append(p, e)
			continue
		}
		e, err := s.entry(values[key])
		if err == nil && !e.unset {
			err = s.check(e.text)
		}
		if wrong, ok := errors.AsType[*Error](err); ok {
			wrong.Setting, wrong.Origin = key, place
			p = append(p, wrong)
			continue
		}
		e.place = place
		entries[s.Variable] = e
	}
	return entries, p
}

// entry converts a value of the file to the text of a flag. The types must agree: a
// number in quotes is a mistake more often than not.
func (s Setting) entry(value any) (entry, error) {
	kind := s.flag.Target.Type()
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	want, isText := "a quoted string", true
	switch {
	case kind.Kind() == reflect.Bool:
		if v, ok := value.(bool); ok {
			return entry{text: strconv.FormatBool(v)}, nil
		}
		want, isText = "true or false, without quotes", false
	case kind.Kind() == reflect.Int:
		if v, ok := value.(int64); ok {
			return entry{text: strconv.FormatInt(v, 10)}, nil
		}
		want, isText = "a whole number, without quotes", false
	case kind.Kind() == reflect.Slice:
		if list, ok := texts(value); ok {
			return entry{text: strings.Join(list, ","), unset: len(list) == 0}, nil
		}
		want, isText = `a list such as ["one", "two"], whose entries are not empty and contain no comma or backslash`, false
	case kind == reflect.TypeFor[Size]():
		if v, ok := value.(int64); ok {
			return entry{text: strconv.FormatInt(v, 10)}, nil
		}
		want = `a size such as "64MiB", or a number of bytes`
	case kind == reflect.TypeFor[Days]() || kind == reflect.TypeFor[time.Duration]():
		want = `a quoted duration, such as "10s"`
	}
	if v, ok := value.(string); ok && isText {
		return entry{text: v}, nil
	}
	shown := fmt.Sprint(value)
	if s.Secret {
		shown = Hidden
	}
	return entry{}, &Error{Value: redact(shown), Want: "expected " + want}
}

// texts returns a list of texts that may be joined with commas.
func texts(value any) ([]string, bool) {
	list, ok := value.([]any)
	var all []string
	for _, v := range list {
		text, isText := v.(string)
		if !isText || text == "" || strings.ContainsAny(text, `,\`) {
			return nil, false
		}
		all = append(all, text)
	}
	return all, ok
}

// lineOf returns the line of a key that the text is known to hold; 0 if it is
// written in a way that hides it.
func lineOf(text, key string) int {
	start := regexp.MustCompile(`^\s*\[*\s*["']?` + regexp.QuoteMeta(key) + `\b`)
	n := 0
	for line := range strings.Lines(text) {
		n++
		if start.MatchString(line) {
			return n
		}
	}
	return 0
}
