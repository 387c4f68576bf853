package abuse

import "curt/internal/weburl"

// spelledAddress returns an address that nobody on the internet has and that a host spells
// below a domain whose servers answer with what is spelled, and what it is for. Where a host
// spells several, one is enough.
func spelledAddress(host string) (address, why string, found bool) {
	for _, a := range weburl.SpelledAddresses(host) {
		if why, found := special(a); found {
			return a.String(), why, true
		}
	}
	return "", "", false
}
