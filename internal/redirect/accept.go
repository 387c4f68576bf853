package redirect

import (
	"strings"
)

// wantsHTML reports whether Accept names text/html with a weight above 0. Wildcards
// do not count: browsers name it, and programs that take anything want JSON.
func wantsHTML(accept []string) bool {
	for _, line := range accept {
		for item := range strings.SplitSeq(line, ",") {
			media, params, _ := strings.Cut(item, ";")
			if strings.EqualFold(strings.Trim(media, " \t"), "text/html") {
				return !refused(params)
			}
		}
	}
	return false
}

// refused reports whether the parameters have a weight of 0 (RFC 9110, 12.4.2).
func refused(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.Trim(param, " \t"), "=")
		if strings.EqualFold(name, "q") {
			return value != "" && strings.Trim(value, "0.") == ""
		}
	}
	return false
}
