package link

import (
	"fmt"
	"strings"
)

// MaxCode is the longest code in bytes; the bound of an alias (64) is the bound
// of every code.
const MaxCode = 64

// Domain is the canonical host that serves a link: lower-case A-labels, with
// ":port" only where the operator configured one. The zero Domain is the
// instance's default domain, whatever its name is today: an operator who moves
// to another host name keeps every link.
type Domain string

// Code is the path of a short link without its slash. Codes are compared byte by
// byte, so case matters, and hold only A-Z a-z 0-9 - _.
type Code string

// Key names a link: a code is unique within its domain, and is never given to
// another link again.
type Key struct {
	Domain Domain
	Code   Code
}

// String returns "domain/code", for messages; the default domain is empty.
func (k Key) String() string { return string(k.Domain) + "/" + string(k.Code) }

// Validate returns ErrInvalid, wrapped with the reason, unless k's code has 1 to
// MaxCode allowed bytes and its domain is in canonical form.
func (k Key) Validate() error {
	if !ValidCode(string(k.Code)) {
		return fmt.Errorf("%w: code %q: expected 1 to %d characters of A-Z a-z 0-9 - _", ErrInvalid, k.Code, MaxCode)
	}
	if d := string(k.Domain); len(d) > 259 || strings.ToLower(d) != d || strings.ContainsAny(d, "/ \t\r\n") {
		return fmt.Errorf("%w: domain %q is not a canonical host", ErrInvalid, d)
	}
	return nil
}

// ValidCode reports whether s could be the code of a link. It does not allocate;
// the redirect path calls it before anything else.
func ValidCode[T ~string | ~[]byte](s T) bool {
	if len(s) == 0 || len(s) > MaxCode {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}
