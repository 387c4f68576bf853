package qr

import (
	"strconv"
	"strings"
)

// Preferred chooses the format by the lines of Accept: PNG for who likes it better
// than SVG, else SVG, also for who likes neither: a picture says more than 406.
func Preferred(accept []string) Format {
	if weight(accept, "png") > weight(accept, "svg+xml") {
		return PNG
	}
	return SVG
}

// weight is the weight of an image type in Accept; the most precise range that
// matches decides (RFC 9110, section 12.5.1).
func weight(accept []string, subtype string) float64 {
	ranges := [...]string{"*/*", "image/*", "image/" + subtype}
	best, found := 0.0, -1
	for _, line := range accept {
		for item := range strings.SplitSeq(line, ",") {
			media, parameters, _ := strings.Cut(item, ";")
			for precise, r := range ranges {
				if precise > found && strings.EqualFold(strings.Trim(media, " \t"), r) {
					best, found = quality(parameters), precise
				}
			}
		}
	}
	return best
}

// quality reads "q" among parameters: 1 without it, 0 for nonsense.
func quality(parameters string) float64 {
	for parameter := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.Trim(parameter, " \t"), "=")
		if strings.EqualFold(name, "q") {
			q, err := strconv.ParseFloat(value, 64)
			if err != nil || !(q >= 0 && q <= 1) {
				return 0
			}
			return q
		}
	}
	return 1
}

// Matches reports whether the lines of If-None-Match name the tag, by the weak
// comparison (RFC 9110, section 13.1.2).
func Matches(lines []string, tag string) bool {
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			item = strings.TrimPrefix(strings.Trim(item, " \t"), "W/")
			if item == tag || item == "*" {
				return true
			}
		}
	}
	return false
}
