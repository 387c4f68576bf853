package config

import "strings"

// ambiguous notes the address of a service whose user or password ends too early, and
// reports whether it does: the rest would be taken for a host, a port, a topic or a
// database, and be shown as such by whoever looks for it.
func (p *problems) ambiguous(name, url string) bool {
	if !endsEarly(url) {
		return false
	}
	p.add(name, url, "use %40 for @ and %2F for / in a user name or password; a port has only digits")
	return true
}

// endsEarly reports whether an @ is left behind the user and the password, or a port is no
// number. libpq, and so the driver of PostgreSQL, ends them at the first @; the others at the
// last one before a slash.
func endsEarly(url string) bool {
	_, rest, ok := strings.Cut(url, "://")
	if !ok {
		return false
	}
	authority, _, _ := strings.Cut(rest, "/")
	end := strings.LastIndex(authority, "@")
	if IsPostgres(url) {
		end = strings.Index(authority, "@")
	}
	place, _, _ := strings.Cut(rest[end+1:], "?")
	if strings.Contains(place, "@") {
		return true
	}
	hosts, _, _ := strings.Cut(place, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		colon := strings.LastIndex(host, ":")
		if colon > strings.LastIndex(host, "]") && strings.Trim(host[colon+1:], "0123456789") != "" {
			return true
		}
	}
	return false
}
