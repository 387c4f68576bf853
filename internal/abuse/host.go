package abuse

import (
	"net/netip"
	"strings"

	"golang.org/x/net/publicsuffix"

	"curt/internal/weburl"
)

// What signals ask of the host of a URL.

// IsAddress reports whether the host of a URL is an address. A name never ends in a label
// of digits (WHATWG URL, "ends in a number checker"), and IPv6 stands in brackets.
func IsAddress(host string) bool {
	if host == "" || host[0] == '[' {
		return host != ""
	}
	if last := host[len(host)-1]; last < '0' || last > '9' {
		return false
	}
	_, err := netip.ParseAddr(host)
	return err == nil
}

// Registrable returns the part of a name that somebody registered: one label more than
// the public suffix; "" for a public suffix itself, and for an address.
func Registrable(host string) string {
	if IsAddress(host) {
		return ""
	}
	suffix, _ := publicsuffix.PublicSuffix(host)
	if len(host) <= len(suffix) {
		return ""
	}
	rest := host[:len(host)-len(suffix)-1]
	return host[strings.LastIndexByte(rest, '.')+1:]
}

// UnicodeLabels returns labels with A-labels read, as many as there are.
func UnicodeLabels(labels string) string {
	if strings.Contains(labels, "xn--") {
		if read := weburl.Spelled(labels); strings.Count(read, ".") == strings.Count(labels, ".") {
			return read
		}
	}
	return labels
}
