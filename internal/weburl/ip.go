package weburl

import (
	"net/netip"
	"strconv"
	"strings"
)

// endsInNumber reports whether a host must be an IPv4 address: its last label is
// decimal digits, or 0x and hexadecimal ones (WHATWG, "ends in a number checker").
func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if digits, ok := strings.CutPrefix(last, "0x"); ok {
		return allDigits(digits, 16)
	}
	return last != "" && allDigits(last, 10)
}

func allDigits(s string, base byte) bool {
	for i := range len(s) {
		if Unhex(s[i]) >= base {
			return false
		}
	}
	return true
}

// parseIPv4 reads one to four numbers, each decimal, octal (0…) or hexadecimal
// (0x…), the last of which fills all bytes that are left: 127.1 and 0x7f000001 are
// 127.0.0.1. The host is in lower case.
func parseIPv4(host string) (string, error) {
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) > 4 {
		return "", ErrHost
	}
	address := uint64(0)
	for i, part := range parts {
		n, ok := parseIPv4Number(part)
		limit, shift := uint64(256), 8*(3-i)
		if i == len(parts)-1 {
			limit, shift = 1<<(8*(4-i)), 0
		}
		if !ok || n >= limit {
			return "", ErrHost
		}
		address |= n << shift
	}
	return netip.AddrFrom4([4]byte{byte(address >> 24), byte(address >> 16), byte(address >> 8), byte(address)}).String(), nil
}

func parseIPv4Number(s string) (n uint64, ok bool) {
	if s == "" {
		return 0, false
	}
	base := byte(10)
	if digits, ok := strings.CutPrefix(s, "0x"); ok {
		base, s = 16, digits
	} else if s[0] == '0' && len(s) > 1 {
		base, s = 8, s[1:]
	}
	if !allDigits(s, base) {
		return 0, false
	}
	for i := range len(s) {
		if n = n*uint64(base) + uint64(Unhex(s[i])); n > 1<<32 {
			n = 1 << 32 // too large for any part, and stays so
		}
	}
	return n, true
}

// parseIPv6 reads an address in brackets. Zones are no part of URLs.
func parseIPv6(s string) (string, error) {
	inner, ok := strings.CutSuffix(s[1:], "]")
	if !ok || strings.IndexByte(inner, '%') >= 0 {
		return "", ErrHost
	}
	a, err := netip.ParseAddr(inner)
	if err != nil || !a.Is6() {
		return "", ErrHost
	}
	if a.Is4In6() { // netip writes its tail in decimal, the standard does not
		b := a.As16()
		return "[::ffff:" + hex16(b[12], b[13]) + ":" + hex16(b[14], b[15]) + "]", nil
	}
	return "[" + a.String() + "]", nil
}

func hex16(hi, lo byte) string { return strconv.FormatUint(uint64(hi)<<8|uint64(lo), 16) }
