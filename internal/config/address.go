package config

import (
	"slices"
	"strings"
)

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

// place returns the hosts and the database of a URL, without user, password and parameters.
func place(url string) (hosts, database string) {
	_, rest, _ := strings.Cut(url, "://")
	authority, database, _ := strings.Cut(rest, "/")
	authority, _, _ = strings.Cut(authority, "?")
	database, _, _ = strings.Cut(database, "?")
	return authority[strings.LastIndex(authority, "@")+1:], database
}

// hasEmptyHost reports whether a comma too many is in a URL: the driver would take it for a part of
// the database's name.
func hasEmptyHost(url string) bool {
	hosts, _ := place(url)
	return strings.HasSuffix(strings.TrimSpace(url), ",") || hosts != "" && slices.Contains(strings.Split(hosts, ","), "")
}

// hasAnother reports whether a URL of ClickHouse has more than that in it.
func hasAnother(url string) bool {
	_, rest, _ := strings.Cut(url, "://")
	_, database := place(url)
	return strings.ContainsAny(url, " \t") || strings.Contains(rest, "://") || strings.Contains(database, ",")
}

// repeated notes the first of several URLs that names the same database as one before.
func (p *problems) repeated(name string, urls []string) bool {
	seen := map[string]bool{}
	for _, url := range urls {
		hosts, database := place(url)
		at := strings.ToLower(hosts) + "/" + database
		if seen[at] {
			p.add(name, url, "set twice")
			return true
		}
		seen[at] = true
	}
	return false
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
