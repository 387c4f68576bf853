package weburl

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

const (
	maxName  = 253 // bytes of a name in DNS, without the final dot (RFC 1035, section 2.3.4)
	maxLabel = 63
)

// parseHost returns the normal form of a host (WHATWG, section 3.5).
func parseHost(s string) (string, error) {
	if s == "" {
		return "", ErrHost
	}
	if s[0] == '[' {
		return parseIPv6(s)
	}
	if plainName(s) {
		return s, nil
	}
	name, err := toASCII(percentDecode(s))
	if err != nil {
		return "", err
	}
	if endsInNumber(name) {
		return parseIPv4(name)
	}
	if !possibleName(name) {
		return "", ErrHost
	}
	return name, nil
}

// plainName reports whether a host is its own normal form for sure: the usual
// case, spared all the rest. Its last label begins with a letter, so that it is no
// address, and no label claims to be an A-label.
func plainName(s string) bool {
	if !possibleName(s) || strings.Contains(s, "xn--") {
		return false
	}
	last := strings.TrimSuffix(s, ".")
	last = last[strings.LastIndexByte(last, '.')+1:]
	return 'a' <= last[0] && last[0] <= 'z'
}

// possibleName reports whether DNS could hold the name, in lower case.
func possibleName(s string) bool {
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > maxName {
		return false
	}
	label := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.':
			if label == 0 {
				return false
			}
			label = 0
			continue
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
		if label++; label > maxLabel {
			return false
		}
	}
	return label > 0
}

// percentDecode decodes every well-formed escape and leaves the rest alone.
func percentDecode(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if hi, lo := Unhex(s[i+1]), Unhex(s[i+2]); hi < 16 && lo < 16 {
				b = append(b, hi<<4|lo)
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

// Unhex returns the value of a hexadecimal digit, 16 for another byte.
func Unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}

// toASCII is the standard's "domain to ASCII", not strict. Names within ASCII and
// without A-labels are lower-cased and never meet UTS 46.
func toASCII(name string) (string, error) {
	if !utf8.ValidString(name) {
		return "", ErrHost
	}
	if isASCII(name) && !strings.Contains(strings.ToLower(name), "xn--") {
		return strings.ToLower(name), nil
	}
	if oddALabel(name) {
		return "", ErrHost
	}
	ascii, err := newProfile().ToASCII(name)
	if err != nil || ascii == "" {
		return "", ErrHost
	}
	return ascii, nil
}

// newProfile returns UTS 46 as browsers set it: non-transitional, CheckBidi,
// CheckJoiners, no CheckHyphens, no STD3 rules (possibleName checks bytes).
func newProfile() *idna.Profile {
	return idna.New(
		idna.MapForLookup(), idna.BidiRule(), idna.ValidateLabels(true), // which checks joiners
		idna.CheckHyphens(false), idna.StrictDomainName(false), idna.Transitional(false), idna.VerifyDNSLength(false),
	)
}

// oddALabel reports whether a label holds the mark of an A-label, in any width,
// and nothing behind it or something outside ASCII around it. The standard refuses
// these; x/net drops the first and decodes some of the second.
func oddALabel(name string) bool {
	for label := range strings.SplitSeq(strings.ReplaceAll(norm.NFKC.String(name), "。", "."), ".") {
		ascii := strings.ToLower(strings.Map(func(r rune) rune {
			if r < utf8.RuneSelf {
				return r
			}
			return -1
		}, label))
		if ascii == "xn--" || (len(ascii) != len(label) && strings.Contains(ascii, "xn--")) {
			return true
		}
	}
	return false
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
