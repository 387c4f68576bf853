package weburl

import (
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
)

// SpelledAddresses returns the addresses that a name in normal form spells below a domain whose
// servers answer with what is spelled, as 192.0.2.7.nip.io and app-192-0-2-7.sslip.io do,
// and 127.0.0.1 for the domains that answer so whatever is below them. Where a name spells
// several, which of them is answered depends on the service: all are returned. That is all
// that a name tells without asking for it: whoever has a domain of their own may let it
// lead to any address.
func SpelledAddresses(name string) []netip.Addr {
	for _, service := range [...]string{"nip.io", "sslip.io", "traefik.me", "xip.io"} { // by their documents
		if below, ok := strings.CutSuffix(name, service); ok && strings.HasSuffix(below, ".") {
			return spelled(below[:len(below)-1])
		}
	}
	for _, service := range [...]string{"localtest.me", "lvh.me"} {
		if below, ok := strings.CutSuffix(name, service); ok && (below == "" || below[len(below)-1] == '.') {
			return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
		}
	}
	return nil
}

// spelled returns the addresses in the labels below such a domain: four numbers between
// dots or hyphens (app.10.0.0.1, app-10-0-0-1), eight hexadecimal digits (app-0a000001), or a
// label that is IPv6 with hyphens for colons (fd00--1).
func spelled(below string) (all []netip.Addr) {
	last := below[strings.LastIndexByte(below, '.')+1:]
	if a, err := netip.ParseAddr(strings.ReplaceAll(last, "-", ":")); err == nil {
		all = appendCarried(append(all, a.Unmap()), a.Unmap())
	}
	var numbers [4]byte
	run := 0 // parts that are numbers, one behind the other
	for part := range strings.FieldsFuncSeq(below, func(r rune) bool { return r == '.' || r == '-' }) {
		if raw, err := hex.DecodeString(part); err == nil && len(raw) == 4 {
			all = append(all, netip.AddrFrom4([4]byte(raw)))
		}
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			run = 0
			continue
		}
		copy(numbers[:], numbers[1:])
		numbers[3] = byte(n)
		if run++; run >= 4 {
			all = append(all, netip.AddrFrom4(numbers))
		}
	}
	return all
}
