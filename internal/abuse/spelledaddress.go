package abuse

import (
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
)

// spelledAddress returns an address that nobody on the internet has and that a host spells
// below a domain whose servers answer with what is spelled, and what it is for. That is
// all that a name tells without asking for it. Where a host spells several, which of them is
// answered depends on the service: one is enough.
func spelledAddress(host string) (address, why string, found bool) {
	for _, name := range [...]string{"nip.io", "sslip.io", "traefik.me", "xip.io"} { // by their documents
		below, ok := strings.CutSuffix(host, "."+name)
		if !ok {
			continue
		}
		for _, a := range spelled(below) {
			if why, found := special(a); found {
				return a.String(), why, true
			}
		}
	}
	for _, name := range [...]string{"localtest.me", "lvh.me"} { // 127.0.0.1, whatever is below
		if below, ok := strings.CutSuffix(host, name); ok && (below == "" || below[len(below)-1] == '.') {
			loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
			why, _ := special(loopback)
			return loopback.String(), why, true
		}
	}
	return "", "", false
}

// spelled returns the addresses in the labels below such a domain: four numbers between
// dots or hyphens (app.10.0.0.1, app-10-0-0-1), eight hexadecimal digits (app-0a000001), or a
// label that is IPv6 with hyphens for colons (fd00--1).
func spelled(below string) (all []netip.Addr) {
	last := below[strings.LastIndexByte(below, '.')+1:]
	if a, err := netip.ParseAddr(strings.ReplaceAll(last, "-", ":")); err == nil {
		all = append(all, a)
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
