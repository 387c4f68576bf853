package server

import (
	"net/netip"

	"curt/internal/shorten"
)

// countryOf returns what says in which country an address is; nil without CURT_GEOIP.
func (s *Server) countryOf() func(netip.Addr) string {
	places := s.clicks.places
	if places == nil {
		return nil
	}
	return func(addr netip.Addr) string {
		if country := places.Locate(addr).Country; country != [2]byte{} {
			return string(country[:])
		}
		return ""
	}
}

// recheck has links judged again, as CURT_RECHECK says.
func (s *Server) recheck(creator *shorten.Creator) {
	if s.config.Recheck == 0 {
		return
	}
	cfg := shorten.RecheckConfig{Every: s.config.Recheck, Work: s.processors.work, Log: s.log}
	if lists := s.ready.blocked; lists != nil {
		cfg.Edition = func() uint64 { return lists.Stats().Reloads }
	}
	s.again = creator.NewRechecker(cfg)
}
