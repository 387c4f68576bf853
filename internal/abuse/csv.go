package abuse

import "strings"

// columns are where a CSV has what we read: its column "url" and, where there is one,
// "url_status", whose "offline" means that nothing is there any more. URLhaus names its
// columns in a comment, PhishTank in the first line.
type columns struct {
	known       bool
	url, status int // -1 = none
}

// read takes the names of the columns from a line; it reports false for a line that is
// something else.
func (c *columns) read(line string) bool {
	line = strings.TrimSpace(strings.TrimLeft(line, "#"))
	if !strings.Contains(line, ",") {
		return false
	}
	found := columns{url: -1, status: -1}
	i := 0
	for name := range strings.SplitSeq(line, ",") {
		name = strings.Trim(name, `" `)
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
			return false
		}
		switch name {
		case "url":
			found.url, found.known = i, true
		case "url_status":
			found.status = i
		}
		i++
	}
	if found.known {
		*c = found
	}
	return found.known
}

// record is a line of a CSV.
func (p *parser) record(line string) verdict {
	var url, status string
	for i := 0; ; i++ {
		field, rest, ok := cutField(line)
		switch {
		case !ok:
			return strange
		case i == p.columns.url:
			url = field
		case i == p.columns.status:
			status = field
		}
		if rest == "" {
			break
		}
		line = rest[1:]
	}
	if strings.EqualFold(status, "offline") {
		return passed
	}
	return p.url(url, ofURL)
}

// cutField returns the first field of a line, and the rest from its comma on. A field
// may stand in quotes, in which two stand for one (RFC 4180); it may not go on in the
// next line.
func cutField(line string) (field, rest string, ok bool) {
	line = strings.TrimLeft(line, " ")
	if !strings.HasPrefix(line, `"`) {
		i := strings.IndexByte(line, ',')
		if i < 0 {
			i = len(line)
		}
		return strings.TrimSpace(line[:i]), line[i:], true
	}
	for i := 1; i < len(line); i++ {
		switch {
		case line[i] != '"':
		case i+1 < len(line) && line[i+1] == '"':
			i++
		default:
			rest = strings.TrimLeft(line[i+1:], " ")
			return strings.ReplaceAll(line[1:i], `""`, `"`), rest, rest == "" || rest[0] == ','
		}
	}
	return "", "", false
}
