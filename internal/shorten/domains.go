package shorten

import (
	"maps"
	"slices"
	"strings"

	"curt/internal/link"
)

// domain returns the Domain that a caller's name for it means. The name of the
// default domain is the zero Domain: an operator who moves to another host name
// keeps every link.
func (r *rules) domain(name Field[string]) (link.Domain, error) {
	if !name.some() {
		return "", nil
	}
	d, ok := r.Domain(name.Value)
	if !ok {
		return "", invalid("domain", "is no domain of this service")
	}
	return d, nil
}

// Domain returns the Domain that serves links under a host name, in any case.
// The empty name is the default domain.
func (r *rules) Domain(name string) (link.Domain, bool) {
	if name == "" {
		return "", true
	}
	d := link.Domain(strings.ToLower(name))
	if d == r.host {
		return "", true
	}
	_, ok := r.domains[d]
	return d, ok
}

// Domains returns the names of the domains that links may be on: the default domain, then
// the others in the order of their letters.
func (r *rules) Domains() []link.Domain {
	others := slices.Sorted(maps.Keys(r.domains))
	return append([]link.Domain{r.host}, slices.DeleteFunc(others, func(d link.Domain) bool { return d == r.host })...)
}
