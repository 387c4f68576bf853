package analyticstest

import (
	"net/netip"

	"curt/internal/clicks"
)

// Places is the map of scripts: the documentation networks of IPv4 lie in three
// countries, and everything else is unknown.
type Places struct{}

var _ clicks.Geo = Places{}

// Locate implements clicks.Geo.
func (Places) Locate(addr netip.Addr) clicks.Location {
	for network, p := range map[string]clicks.Location{
		"198.51.100.0/25":   {Country: [2]byte{'D', 'E'}, City: "Berlin", Network: "Example Net"},
		"198.51.100.128/25": {Country: [2]byte{'D', 'E'}, City: "Köln"},
		"203.0.113.0/24":    {Country: [2]byte{'N', 'P'}, City: "Kathmandu", Network: "Example Net"},
	} {
		if netip.MustParsePrefix(network).Contains(addr) {
			return p
		}
	}
	return clicks.Location{}
}
