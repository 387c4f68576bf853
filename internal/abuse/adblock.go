package abuse

import "strings"

// Of Adblock syntax, as AdGuard and uBlock Origin read it, these lines mean something
// to a shortener, which visits and does not embed:
//
//	||evil.example^             the host and all below it
//	||evil.example/a^           what begins so, on the host and all below it
//	|https://evil.example/a     what begins so, on that host
//	@@||good.example^           the list says nothing of that host, and of all below it
//
// with "*" or "|" at the end or without, and with the modifiers all, document, doc and
// important, which mean the page itself. An exception wins over every line of its own
// list, important or not, and over no other list. Every other modifier means something
// smaller than a host, such as scripts of third parties: such a line is passed over, and
// so is one that hides parts of pages, a regular expression and a pattern with a "*" or
// "^" in its middle.

// isHeader recognises the lines that say that a list is in Adblock syntax, where any text
// is a pattern: "[Adblock Plus]" and "! Title: ".
func isHeader(line string) bool {
	line = strings.ToLower(line)
	return strings.HasPrefix(line, "[adblock") || strings.HasPrefix(line, "[adguard") || strings.HasPrefix(line, "[ublock") ||
		strings.HasPrefix(line, "! title:")
}

func isRule(line string) bool {
	return strings.HasPrefix(line, "||") || strings.HasPrefix(line, "@@") || strings.HasPrefix(line, "|http")
}

// isCosmetic recognises a line that hides parts of pages, as "example.com##.banner": a
// careless cut at the "#" would forbid its host.
func isCosmetic(line string) bool {
	for i := 1; i < len(line)-1; i++ {
		if line[i] != '#' || line[i-1] == ' ' || line[i-1] == '\t' {
			continue
		}
		if rest := strings.TrimLeft(line[i+1:], "@?$%"); len(line)-i-1-len(rest) <= 2 && strings.HasPrefix(rest, "#") {
			return true
		}
	}
	return false
}

// wholePage reports whether all modifiers of a rule mean the page itself.
func wholePage(modifiers string) bool {
	for m := range strings.SplitSeq(modifiers, ",") {
		switch m {
		case "all", "document", "doc", "important":
		default:
			return false
		}
	}
	return true
}

// rule is a line in Adblock syntax.
func (p *parser) rule(line string) verdict {
	pattern, exception := strings.CutPrefix(line, "@@")
	if i := strings.LastIndexByte(pattern, '$'); i >= 0 {
		if !wholePage(pattern[i+1:]) {
			return passed
		}
		pattern = pattern[:i]
	}
	as := func(k kind) kind {
		if exception && !p.turned {
			return k.excepted()
		}
		return k
	}
	pattern, below := strings.CutPrefix(pattern, "||")
	if !below {
		pattern, _ = strings.CutPrefix(pattern, "|")
	}
	open := strings.Contains(pattern, ".*") // what follows the dot is open
	pattern = strings.TrimRight(strings.TrimPrefix(pattern, "*."), "*^|")
	switch {
	case pattern == "" || open || strings.ContainsAny(pattern, "*^| \t"):
		return passed
	case !below && isURL(pattern):
		return min(p.url(pattern, as(ofURL)), passed)
	case !below:
		return passed
	case pattern[0] == '[' || !strings.ContainsAny(pattern, "/?:"):
		if host, err := hostOf(pattern); err == nil && isWhole(host, pattern) {
			return p.emit(as(ofHost), host, 0)
		}
		return passed
	}
	return min(p.url("http://"+pattern, as(ofBelow)), passed)
}
