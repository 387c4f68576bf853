package moderation

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/publicsuffix"

	"curt/internal/link"
	"curt/internal/weburl"
)

// InvalidError says which field of a request is wrong, and how.
type InvalidError struct{ Field, Reason string }

func (e *InvalidError) Error() string { return e.Field + ": " + e.Reason }

// PublicMessage returns the reason in words for the caller.
func (e *InvalidError) PublicMessage() string { return e.Reason }

// Is makes every InvalidError an ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

func Invalid(field, reason string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(reason, args...)}
}

const (
	// Shorter prefixes are whole registries: a slip of the finger that shuts everybody out.
	widest4, widest6 = 8, 16
	// narrowest6 is what one subscriber has at the least. Callers under IPv6 are known by
	// their /64, so that nothing longer could be told apart.
	narrowest6 = 64
)

// ParseEntity reads what a person calls an entity. Of the spellings that a host, an
// address or a link can have it returns the one that the journal knows. The error is an
// InvalidError of the field "name" or "kind".
func ParseEntity(kind Kind, name string) (Entity, error) {
	e := Entity{kind, name}
	var err error
	switch kind {
	case KindLink:
		if !strings.Contains(name, "/") {
			e.Name = "/" + name // in the default domain
		}
		if _, ok := e.Key(); !ok {
			err = errors.New("expected CODE, or DOMAIN/CODE for a link on another domain")
		}
	case KindWorkspace, KindKey:
		if name == "" || len(name) > link.MaxName || !plainText(name) {
			err = fmt.Errorf("expected the id of a %s", kind)
		}
	case KindHost:
		e.Name, err = parseHost(name)
	case KindDomain:
		e.Name, err = parseDomain(name)
	case KindNetwork:
		e.Name, err = parseNetwork(name)
	default:
		return Entity{}, Invalid("kind", "expected link, workspace, key, host, domain or network")
	}
	if err != nil {
		return Entity{}, Invalid("name", "%v", err)
	}
	return e, nil
}

var (
	errHost    = errors.New("expected a host, without scheme, port and path")
	errNetwork = errors.New("expected an address or a prefix such as 192.0.2.0/24")
)

func parseHost(name string) (string, error) {
	host, err := weburl.ParseHost(name)
	if err != nil {
		return "", errHost
	}
	return host, nil
}

// parseDomain takes no address, below which nothing is, and no public suffix under which
// everybody registers. One that a company offers to its customers is a domain: whoever
// bans it sees in the preview what it costs.
func parseDomain(name string) (string, error) {
	host, err := parseHost(name)
	if err != nil {
		return "", err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return "", errors.New("is an IP address; use kind host")
	}
	if suffix, icann := publicsuffix.PublicSuffix(host); suffix == host && (icann || !strings.Contains(host, ".")) {
		return "", errors.New("is a public suffix")
	}
	return host, nil
}

func parseNetwork(name string) (string, error) {
	prefix, err := netip.ParsePrefix(name)
	if a, errAddr := netip.ParseAddr(name); errAddr == nil && a.Zone() == "" {
		prefix, err = netip.PrefixFrom(a, a.BitLen()), nil
		if a.Is6() && !a.Is4In6() {
			prefix = netip.PrefixFrom(a, narrowest6)
		}
	}
	if err != nil {
		return "", errNetwork
	}
	if a := prefix.Addr(); a.Is4In6() {
		if prefix.Bits() < 96 {
			return "", errNetwork
		}
		prefix = netip.PrefixFrom(a.Unmap(), prefix.Bits()-96)
	}
	widest, narrowest := widest4, 32
	if prefix.Addr().Is6() {
		widest, narrowest = widest6, narrowest6
	}
	if prefix.Bits() < widest || prefix.Bits() > narrowest {
		return "", fmt.Errorf("expected a prefix from /%d to /%d", widest, narrowest)
	}
	return prefix.Masked().String(), nil
}

// plainText reports whether s is UTF-8 that can be shown as it is.
func plainText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// CheckReason returns an InvalidError for a reason that cannot explain a decision.
func CheckReason(reason string) error {
	switch odd := strings.ContainsFunc(reason, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); {
	case strings.TrimSpace(reason) == "":
		return Invalid("reason", "is required")
	case len(reason) > MaxReason:
		return Invalid("reason", "expected at most %d bytes", MaxReason)
	case odd || strings.ContainsRune(reason, unicode.ReplacementChar):
		return Invalid("reason", "expected text without control characters")
	}
	return nil
}
