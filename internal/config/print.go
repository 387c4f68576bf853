package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// TOML returns the settings as they are in effect, each with where it comes from, as
// a file that sets the same again. What is unset stands there as a comment, and so do
// secrets and URLs with one, which are not shown.
func (f *Flags) TOML() (string, error) {
	settings, err := Settings()
	if err != nil {
		return "", err
	}
	values := reflect.ValueOf(f.Config)
	var text strings.Builder
	for i, s := range settings {
		// Config has no nested fields, so that its flags are its fields.
		value, set := valueTOML(values.Field(i))
		from := f.Origins[s.Variable].describe(s)
		switch {
		case s.Hidden && from == "default":
			continue
		case s.Secret && set:
			value = strconv.Quote(Hidden)
		}
		comment := ""
		if s.Secret || (!set && s.Default == "") {
			comment = "# "
		}
		if shown := withoutSecret(values.Field(i)); shown != "" {
			comment, value = "# ", shown
		}
		fmt.Fprintf(&text, "%s%s = %s # %s\n", comment, s.Key, value, from)
	}
	return text.String(), nil
}

// withoutSecret returns a value as TOML shows it when a secret is in it, or in an entry of a
// list; "" when there is none.
func withoutSecret(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case string:
		if shown := masked(x); shown != x {
			return quoteTOML(shown)
		}
	case []string:
		shown := make([]string, len(x))
		for i, e := range x {
			shown[i] = masked(e)
			if i > 0 && strings.Contains(x[i-1], "://") && !strings.Contains(e, "://") {
				// A comma in a password, where the list was cut: nobody knows what is what.
				return quoteTOML(redact(strings.Join(x, ",")))
			}
		}
		if !slices.Equal(shown, x) {
			text, _ := valueTOML(reflect.ValueOf(shown))
			return text
		}
	}
	return ""
}

// masked hides the secrets of what may be an address of something.
func masked(text string) string {
	if !strings.Contains(text, "://") && !password().MatchString(text) {
		return text // an @ and a ? alone are in paths, too
	}
	return redact(text)
}

func (o Origin) describe(s Setting) string {
	switch o.Kind {
	case "":
		return "default"
	case "env":
		return "set by " + s.Variable
	default:
		return strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f { // the name of a file may hold what a comment may not
				return '?'
			}
			return r
		}, o.Location)
	}
}

// valueTOML returns a field as TOML, and whether it is set at all.
func valueTOML(v reflect.Value) (text string, set bool) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return `""`, false
		}
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case bool:
		return strconv.FormatBool(x), true
	case int:
		return strconv.Itoa(x), true
	case string:
		return quoteTOML(x), x != ""
	case []string:
		quoted := make([]string, len(x))
		for i, e := range x {
			quoted[i] = quoteTOML(e)
		}
		return "[" + strings.Join(quoted, ", ") + "]", len(x) > 0
	case time.Duration:
		return quoteTOML(x.String()), true
	default:
		return quoteTOML(fmt.Sprint(x)), true
	}
}

// quoteTOML writes a basic string. Go's escapes are not TOML's.
func quoteTOML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case !unicode.IsPrint(r): // nor what turns the direction of text
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
