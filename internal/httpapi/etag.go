package httpapi

import (
	"net/http"
	"strconv"
	"strings"

	"curt/internal/link"
	"curt/internal/shorten"
)

// etag is the entity tag of a link: its version.
func etag(v link.Version) string { return `"` + strconv.FormatUint(uint64(v), 10) + `"` }

// ifMatch reads the If-Match header (RFC 9110, section 13.1.1). Without it any
// version will do. A weak tag never matches, as the strong comparison wants; a
// tag that we never made does not either, and text that is no tag is refused.
func ifMatch(h http.Header) (shorten.Match, error) {
	lines := h["If-Match"]
	if len(lines) == 0 {
		return shorten.Match{}, nil
	}
	match := shorten.Match{Only: true}
	rest := strings.Join(lines, ",")
	if strings.TrimSpace(rest) == "*" {
		return shorten.Match{}, nil
	}
	for tag := range strings.SplitSeq(rest, ",") {
		tag = strings.Trim(tag, " \t")
		weak := strings.HasPrefix(tag, "W/")
		text := strings.TrimPrefix(tag, "W/")
		if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' || strings.Contains(text[1:len(text)-1], `"`) {
			return shorten.Match{}, badField("If-Match", `want "*" or versions in quotes, like "3"`)
		}
		version, err := strconv.ParseUint(text[1:len(text)-1], 10, 64)
		if err == nil && !weak && etag(link.Version(version)) == text {
			match.Versions = append(match.Versions, link.Version(version))
		}
	}
	return match, nil
}
