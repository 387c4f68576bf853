package redirect

import (
	"strings"

	"curt/internal/hosts"
	"curt/internal/link"
	"curt/internal/weburl"
)

// NewLoopGuard returns what cache.Config.Admit wants: it marks a target whose
// destination is a host of ours, and removes a fallback that is. It is called when a
// target enters L1 and never by a hit.
func NewLoopGuard(ours *hosts.Current) func(link.Target) link.Target {
	isOurs := func(url string) bool {
		u, err := weburl.Parse(url)
		return err == nil && ours.Load().Refuses(u) // an invalid URL is refused elsewhere
	}
	return func(t link.Target) link.Target {
		t.Loops = isOurs(t.Destination)
		if t.Fallback != "" && isOurs(t.Fallback) {
			t.Fallback = ""
		}
		return t
	}
}

// LeadsBack reports whether a visitor who follows url comes back with the same Host:
// name and port are compared, not case, and without a port the scheme's own counts.
// It is for a Host that is not configured and yet reached us, by an unknown name in DNS;
// no URL leads back to an empty host. It allocates
// nothing.
func LeadsBack(url, host string) bool {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok || rest == "" || host == "" || rest[0]|0x20 != host[0]|0x20 { // most differ at once; 0x20 is the case
		return false
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	name, port := hosts.SplitPort(rest)
	hostName, hostPort := hosts.SplitPort(host)
	return portOr(port, scheme) == portOr(hostPort, scheme) &&
		strings.EqualFold(strings.TrimSuffix(name, "."), strings.TrimSuffix(hostName, "."))
}

// portOr returns ":port", or that of the scheme if there is none.
func portOr(port, scheme string) string {
	switch {
	case len(port) > len(":"):
		return port
	case scheme == "https":
		return ":443"
	}
	return ":80"
}
