package lists

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"curt/internal/abuse/blocklist"
	"curt/internal/abuse/lookalike"
	"curt/internal/abuse/skeleton"
	"curt/internal/link"
	"curt/internal/moderation"
)

// Bounds of one line, in bytes, and of the lines of one import.
const (
	MaxLine   = 255
	MaxImport = 10_000

	// shortestWord is the shortest refused word in characters, as of an alias: shorter beginnings refuse
	// so many generated codes that creates find none.
	shortestWord = 3
)

// Marks in front of a line.
const (
	without = "-" // of a built-in line: it is disabled
	except  = "!" // of an alias: it looks like no name
)

// Parse returns the line that a moderator writes, in canonical form. Errors are InvalidErrors of
// the field "value". The built-in lines are those that "-" may disable.
func Parse(kind moderation.Kind, value string, builtin []string) (moderation.Entity, error) {
	e := moderation.Entity{Kind: kind, Name: strings.TrimSpace(value)}
	fail := func(reason string, args ...any) (moderation.Entity, error) {
		return moderation.Entity{}, moderation.Invalid("value", reason, args...)
	}
	switch {
	case e.Name == "":
		return fail("is required")
	case len(e.Name) > MaxLine:
		return fail("expected at most %d bytes", MaxLine)
	case !utf8.ValidString(e.Name) || strings.ContainsFunc(e.Name, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }):
		return fail("expected text without control characters")
	}
	if disabled, ok := strings.CutPrefix(e.Name, without); ok && kind != moderation.KindAllowedDestination {
		if disabled = strings.ToLower(disabled); !slices.Contains(builtin, disabled) {
			return fail("%q is not a built-in line; to refuse words that begin with -, use ~", disabled)
		}
		e.Name = without + disabled
		return e, nil
	}
	switch kind {
	case moderation.KindRefusedWord:
		word, ok := blocklist.ParseWord(e.Name)
		if !ok || len(word) > MaxLine {
			return fail("expected a word that an alias can be, a beginning such as word*, or ~word for all that reads like it")
		}
		e.Name = word
	case moderation.KindLookAlike:
		return parseLookAlike(e)
	case moderation.KindAllowedDestination:
		for _, as := range []moderation.Kind{moderation.KindDomain, moderation.KindHost} { // below an address is nothing
			of, err := moderation.ParseEntity(as, e.Name)
			if err == nil && len(of.Name) <= MaxLine {
				e.Name = of.Name
				return e, nil
			}
			if as == moderation.KindDomain && !strings.Contains(err.Error(), "IP address") {
				return fail("expected a domain such as example.com, or an address, without scheme, port and path")
			}
		}
	default:
		return moderation.Entity{}, moderation.Invalid("list", "unknown list")
	}
	return e, nil
}

// Line is one of several that are parsed; errors name its number, unless that is 0.
type Line struct {
	Number int
	Value  string
}

// ParseAll is Parse for several lines, of which each is returned once. ActionList refuses lines that
// ActionUnlist still removes from lists of earlier releases. The field of an error is "text" where a
// line has a number.
func ParseAll(action moderation.Action, kind moderation.Kind, values []Line, builtin []string) ([]moderation.Entity, error) {
	all, seen := make([]moderation.Entity, 0, len(values)), make(map[moderation.Entity]bool, len(values))
	for _, v := range values {
		of, err := Parse(kind, v.Value, builtin)
		if err == nil && action == moderation.ActionList {
			err = checkNew(of)
		}
		switch {
		case err != nil && v.Number > 0:
			return nil, moderation.Invalid("text", "line %d: %v", v.Number, err)
		case err != nil:
			return nil, err
		case !seen[of]:
			seen[of], all = true, append(all, of)
		}
	}
	return all, nil
}

// checkNew returns an InvalidError for a line that refuses far more than it says, or no destination.
func checkNew(of moderation.Entity) error {
	switch of.Kind {
	case moderation.KindRefusedWord:
		if word := strings.Trim(of.Name, "~*"); utf8.RuneCountInString(word) < shortestWord {
			return moderation.Invalid("value", "expected at least %d characters, without ~ and *", shortestWord)
		}
	case moderation.KindAllowedDestination:
		for label := range strings.SplitSeq(of.Name, ".") {
			if strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
				return moderation.Invalid("value", "invalid host: the label %q begins or ends with -", label)
			}
		}
	default:
	}
	return nil
}

func parseLookAlike(e moderation.Entity) (moderation.Entity, error) {
	e.Name = strings.ToLower(e.Name)
	if alias, ok := strings.CutPrefix(e.Name, except); ok {
		if !link.ValidCode(alias) {
			return moderation.Entity{}, moderation.Invalid("value", "expected an alias behind !")
		}
		e.Name = except + string(appendBare(nil, alias))
		if e.Name == except {
			return moderation.Entity{}, moderation.Invalid("value", "expected letters or digits behind !")
		}
		return e, nil
	}
	if err := lookalike.ParseName(e.Name); err != nil {
		return moderation.Entity{}, moderation.Invalid("value", "%v; write ~name to exclude aliases with one letter wrong, !alias for an alias that is allowed, -name to disable a built-in name", err)
	}
	return e, nil
}

// appendBare appends an alias in lower case without "-" and "_".
func appendBare(dst []byte, alias string) []byte {
	for i := range len(alias) {
		c := alias[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != '-' && c != '_' {
			dst = append(dst, c)
		}
	}
	return dst
}

//go:embed refused.txt
var refusedWords string

// builtinWords are the refused words of this package.
func builtinWords() []string {
	var all []string
	for line := range strings.Lines(refusedWords) {
		line, _, _ = strings.Cut(line, "#")
		all = append(all, strings.Fields(line)...)
	}
	return all
}

// Service returns the skeletons of the service names that are not disabled.
func Service(off map[string]struct{}) map[string]struct{} {
	all := map[string]struct{}{}
	for _, name := range ServiceNames() {
		if _, disabled := off[name]; !disabled {
			all[skeleton.Of(name)] = struct{}{}
		}
	}
	return all
}

// ServiceNames are the reserved words by which a visitor believes to speak with the service
// itself: no alias may look like one of them. Other reserved words are paths, and may be imitated.
func ServiceNames() []string {
	return []string{
		"admin", "login", "logout", "signup", "oauth", "auth", "report", "abuse", "appeal", "help", "about", "terms", "privacy", "status",
	}
}
