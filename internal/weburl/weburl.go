package weburl

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxLength bounds a URL in bytes, as sent and in normal form.
const MaxLength = 8192

// URL is a destination in WHATWG normal form. Only Parse makes one; the zero URL
// is none.
type URL struct {
	href string
	host string // part of href
	port uint16 // 0 = the scheme's default
}

// Parse reads a destination as a browser reads a link, and refuses what curt never
// redirects to. These are all rules for the URLs that a caller gives; the last is
// [Hosts.Refuses], because it depends on who we are:
//
//	rule                                                           | error
//	at most 8,192 bytes, as sent and in normal form                | ErrTooLong
//	valid UTF-8                                                    | ErrEncoding
//	no C0 control, so no tab and no line end, and no DEL, at the   | ErrControl
//	  ends either: browsers remove some of them and escape others, |
//	  programs that log or forward the URL may not                 |
//	spaces at both ends are removed, because browsers remove them  |
//	something is left                                              | ErrEmpty
//	absolute, and the scheme is http or https in any case          | ErrScheme
//	no user name and no password ("http://@host/" has neither)     | ErrCredentials
//	the host is an IPv4 or IPv6 address in any spelling that       | ErrHost
//	  browsers take, or after percent-decoding and UTS 46 a name   |
//	  of labels of 1 to 63 of a-z 0-9 - _, at most 253 in all,     |
//	  perhaps with a final dot                                     |
//	the port is empty or 1 to 65535                                | ErrPort
//	the host is none of ours, by whatever spelling and port:       | Hosts.Refuses
//	  no name or address that we serve links on or listen on; and  |
//	  no loopback, if that is where we listen                      |
//
// The host rule is stricter than the standard, which also takes names that DNS
// cannot hold ("http://a..b/", "http://+1/"), and so are the port rule (0) and that of
// control characters. A percent-encoded control ("%0A") stays as it came.
//
// The result is the serialisation of the standard: lower-case scheme and host,
// hosts outside ASCII as A-labels, addresses in canonical form, default ports and
// dot segments gone, and only bytes 0x21 to 0x7E, so that it is safe in a header. A
// final dot, a query, a fragment, escapes and their case stay as they came.
// Parse of a result returns it unchanged. The cost is linear in len(raw).
func Parse(raw string) (URL, error) {
	if len(raw) > MaxLength {
		return URL{}, ErrTooLong
	}
	if !utf8.ValidString(raw) {
		return URL{}, ErrEncoding
	}
	if holdsControl(raw) {
		return URL{}, ErrControl
	}
	s := strings.Trim(raw, " ")
	if s == "" {
		return URL{}, ErrEmpty
	}
	scheme, rest, err := cutScheme(s)
	if err != nil {
		return URL{}, err
	}
	authority, rest := cutAuthority(rest)
	host, port, err := parseAuthority(authority, scheme)
	if err != nil {
		return URL{}, err
	}
	var stack [512]byte // usual URLs are built without the heap
	b := append(stack[:0], scheme...)
	b = append(b, "://"...)
	hostAt := len(b)
	b = append(b, host...)
	if port != 0 {
		b = strconv.AppendUint(append(b, ':'), uint64(port), 10)
	}
	if b = appendRest(b, rest); len(b) > MaxLength {
		return URL{}, ErrTooLong
	}
	href := raw
	if string(b) != raw {
		href = string(b)
	}
	return URL{href: href, host: href[hostAt : hostAt+len(host)], port: port}, nil
}

// Href returns the URL in normal form: what is stored and what Location says.
func (u URL) Href() string { return u.href }

// Scheme returns "http" or "https".
func (u URL) Scheme() string {
	scheme, _, _ := strings.Cut(u.href, ":")
	return scheme
}

// Host returns the name, or the address with brackets around IPv6, without port.
func (u URL) Host() string { return u.host }

// Port returns the port that a visitor connects to.
func (u URL) Port() uint16 {
	switch {
	case u.port != 0:
		return u.port
	case u.Scheme() == "https":
		return defaultHTTPS
	}
	return defaultHTTP
}

const (
	defaultHTTP  = 80
	defaultHTTPS = 443
)

// holdsControl reports a C0 control or DEL.
func holdsControl(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7F {
			return true
		}
	}
	return false
}

// cutScheme returns the scheme and what follows it and any slashes, whichever way
// they lean: browsers read http:host, http:/host and http:\\\host alike.
func cutScheme(s string) (scheme, rest string, err error) {
	name, rest, _ := strings.Cut(s, ":")
	switch {
	case len(name) == len(s):
		return "", "", ErrScheme
	case strings.EqualFold(name, "https") && len(name) == len("https"): // "httpſ" folds to it too
		scheme = "https"
	case strings.EqualFold(name, "http"):
		scheme = "http"
	default:
		return "", "", ErrScheme
	}
	return scheme, strings.TrimLeft(rest, `/\`), nil
}

// cutAuthority splits at the first byte that ends an authority.
func cutAuthority(s string) (authority, rest string) {
	if i := strings.IndexAny(s, `/\?#`); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// parseAuthority returns the host in normal form, and 0 for the default port.
func parseAuthority(s, scheme string) (host string, port uint16, err error) {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		if userinfo := s[:i]; userinfo != "" && userinfo != ":" {
			return "", 0, ErrCredentials
		}
		s = s[i+1:]
	}
	name, digits := cutPort(s)
	if host, err = parseHost(name); err != nil {
		return "", 0, err
	}
	if port, err = parsePort(digits); err != nil {
		return "", 0, err
	}
	if (scheme == "http" && port == defaultHTTP) || (scheme == "https" && port == defaultHTTPS) {
		port = 0
	}
	return host, port, nil
}

// cutPort splits at the first colon outside of brackets.
func cutPort(s string) (host, port string) {
	bracket := false
	for i := range len(s) {
		switch s[i] {
		case '[':
			bracket = true
		case ']':
			bracket = false
		case ':':
			if !bracket {
				return s[:i], s[i+1:]
			}
		}
	}
	return s, ""
}

func parsePort(s string) (uint16, error) {
	if s == "" {
		return 0, nil
	}
	port := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, ErrPort
		}
		if port = port*10 + int(s[i]-'0'); port > 65535 {
			return 0, ErrPort
		}
	}
	if port == 0 {
		return 0, ErrPort
	}
	return uint16(port), nil
}
