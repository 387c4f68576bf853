package abuse

import (
	"iter"
	"net/netip"
	"strings"

	"golang.org/x/net/publicsuffix"

	"curt/internal/weburl"
)

// Rule is what forbids a destination: enough for its maker to see why, and for the
// operator to find the line.
type Rule struct {
	List string // the name of the file, without folder and extension
	Host string // as the list means it: the destination's host, or a domain above it
}

// Match returns the rule that forbids links to u, of the first list that has one. A
// line of a list means its host and everything below it, up to the border that the
// public suffix list draws: "example.co.uk" forbids www.example.co.uk, and neither
// "co.uk" nor "github.io" forbids what is below them, because that belongs to others.
// An address forbids itself in every spelling, also inside an IPv6 address.
func (b *Blocklists) Match(u weburl.URL) (Rule, bool) {
	for name := range names(u) {
		digest := b.digest(name)
		for _, l := range b.lists {
			if l.has(digest) {
				return Rule{List: l.name, Host: name}, true
			}
		}
	}
	return Rule{}, false
}

// names yields the names that would forbid u if a list had them, the nearest first.
func names(u weburl.URL) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, host := range u.Hosts() {
			if !yield(host) {
				return
			}
			if _, err := netip.ParseAddr(host); err == nil {
				continue // nothing is above an address
			}
			border, _ := publicsuffix.PublicSuffix(host)
			for len(host) > len(border) {
				_, host, _ = strings.Cut(host, ".")
				if len(host) <= len(border) {
					break
				}
				if !yield(host) {
					return
				}
			}
		}
	}
}
