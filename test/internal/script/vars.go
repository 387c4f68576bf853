package script

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Vars are the values that ${name} stands for.
type Vars map[string]string

// reference is ${name}, ${text*count} or ${now+duration}.
var reference = regexp.MustCompile(`\$\{([^}]*)\}`)

// Expand replaces every reference in s; quote is applied to each value, for texts
// that are regular expressions. An unknown name is an error.
func (v Vars) Expand(s string, now time.Time, quote func(string) string) (string, error) {
	var failed error
	out := reference.ReplaceAllStringFunc(s, func(ref string) string {
		value, err := v.value(ref[2:len(ref)-1], now)
		if err != nil {
			failed = err
		}
		return quote(value)
	})
	return out, failed
}

func (v Vars) value(name string, now time.Time) (string, error) {
	if value, ok := v[name]; ok {
		return value, nil
	}
	if text, count, ok := strings.Cut(name, "*"); ok {
		n, err := strconv.Atoi(count)
		if err != nil || n < 0 || n > 64<<20 {
			return "", fmt.Errorf("${%s}: bad count", name)
		}
		return strings.Repeat(text, n), nil
	}
	if offset, ok := strings.CutPrefix(name, "now"); ok {
		d, err := time.ParseDuration(offset)
		if err != nil {
			return "", fmt.Errorf("${%s}: want ${now+1s} or ${now-1s}", name)
		}
		return now.Add(d).UTC().Format("2006-01-02T15:04:05.000Z"), nil
	}
	return "", fmt.Errorf("${%s} is not known here", name)
}

func same(s string) string { return s }
