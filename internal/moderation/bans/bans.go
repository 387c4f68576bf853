// Package bans has the bans that stand in memory, and tells which of them mean a link. Read
// bans.go; gate.go lets a new ban wait for the writes that were judged without it.
package bans

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"curt/internal/abuse"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/weburl"
)

// Set is bans in memory: a question costs some look-ups in maps, however many bans
// there are. It is safe for many goroutines.
type Set struct {
	mu       sync.RWMutex
	bans     map[moderation.Entity]moderation.Entry // guarded by mu, as all below
	networks map[netip.Prefix]moderation.Entry      // the bans of KindNetwork again
	lengths  []int                                  // of those prefixes, each once
	links    int                                    // how many bans are of KindLink
	hosts    int                                    // of KindHost or KindDomain
}

func New(bans ...moderation.Entry) *Set {
	s := &Set{bans: map[moderation.Entity]moderation.Entry{}, networks: map[netip.Prefix]moderation.Entry{}}
	for _, b := range bans {
		s.Put(b)
	}
	return s
}

// Put adds a ban, in the place of the one that its entity had.
func (s *Set) Put(b moderation.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, had := s.bans[b.Entity]; !had {
		s.count(b.Entity.Kind, 1)
	}
	s.bans[b.Entity] = b
	if p, err := netip.ParsePrefix(b.Entity.Name); b.Entity.Kind == moderation.KindNetwork && err == nil {
		s.networks[p] = b
		if !slices.Contains(s.lengths, p.Bits()) {
			s.lengths = append(s.lengths, p.Bits())
		}
	}
}

// Drop takes the ban of an entity away.
func (s *Set) Drop(e moderation.Entity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, had := s.bans[e]; !had {
		return
	}
	delete(s.bans, e)
	s.count(e.Kind, -1)
	if p, err := netip.ParsePrefix(e.Name); e.Kind == moderation.KindNetwork && err == nil {
		delete(s.networks, p) // its length stays: a look-up more, until the next start
	}
}

func (s *Set) count(kind moderation.Kind, n int) {
	switch kind {
	case moderation.KindLink:
		s.links += n
	case moderation.KindHost, moderation.KindDomain:
		s.hosts += n
	default:
	}
}

// Of returns the ban of exactly this entity.
func (s *Set) Of(e moderation.Entity) (moderation.Entry, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	b, ok := s.bans[e]
	return b, ok
}

func (s *Set) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.bans)
}

// All returns the bans, the newest first.
func (s *Set) All() []moderation.Entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	bans := make([]moderation.Entry, 0, len(s.bans))
	for _, b := range s.bans {
		bans = append(bans, b)
	}
	slices.SortFunc(bans, func(a, b moderation.Entry) int { return cmp.Compare(b.Sequence, a.Sequence) })
	return bans
}

// Against returns the gravest ban that what is asked for would meet.
func (s *Set) Against(f *abuse.Facts) (worst moderation.Entry, barred bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.bans) == 0 {
		return moderation.Entry{}, false
	}
	meet := func(b moderation.Entry, ok bool) {
		if ok && (!barred || b.Safety > worst.Safety) {
			worst, barred = b, true
		}
	}
	s.owners(f.Workspace, f.Creator, meet)
	s.network(f.Network, meet)
	if s.hosts > 0 {
		s.destination(f.URL, meet)
	}
	return worst, barred
}

// Safety returns the gravest safety that the bans want of a link; Clean where none means
// it.
func (s *Set) Safety(l *link.Link) link.Safety {
	worst, _ := s.Worst(l)
	return max(link.Clean, worst.Safety)
}

// Worst returns the gravest ban that means a link.
func (s *Set) Worst(l *link.Link) (worst moderation.Entry, banned bool) {
	s.Each(l, func(b moderation.Entry, ok bool) {
		if ok && (!banned || b.Safety > worst.Safety) {
			worst, banned = b, true
		}
	})
	return worst, banned
}

// Each calls meet with every ban that may mean a link, and with whether it does. One that
// means its destination and its fallback comes twice.
func (s *Set) Each(l *link.Link, meet func(b moderation.Entry, ok bool)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.bans) == 0 {
		return
	}
	s.owners(l.Workspace, l.CreatedBy, meet)
	if s.links > 0 {
		b, ok := s.bans[moderation.OfLink(l.Key)]
		meet(b, ok)
	}
	if s.hosts == 0 {
		return
	}
	for _, href := range []string{l.Destination, l.Fallback} {
		if u, err := weburl.Parse(href); href != "" && err == nil {
			s.destination(u, meet)
		}
	}
}

// The three below call meet with what they look up; mu is held.

func (s *Set) owners(w link.WorkspaceID, maker string, meet func(moderation.Entry, bool)) {
	b, ok := s.bans[moderation.Entity{Kind: moderation.KindWorkspace, Name: string(w)}]
	meet(b, ok)
	if maker != "" {
		b, ok = s.bans[moderation.Entity{Kind: moderation.KindKey, Name: maker}]
		meet(b, ok)
	}
}

func (s *Set) destination(u weburl.URL, meet func(moderation.Entry, bool)) {
	for _, host := range u.Hosts() {
		b, ok := s.bans[moderation.Entity{Kind: moderation.KindHost, Name: host}]
		meet(b, ok)
		for more := true; more; _, host, more = strings.Cut(host, ".") {
			b, ok := s.bans[moderation.Entity{Kind: moderation.KindDomain, Name: host}]
			meet(b, ok)
		}
	}
	for _, a := range weburl.SpelledAddresses(strings.TrimSuffix(u.Host(), ".")) { // what is banned may be reached by such a name
		b, ok := s.bans[moderation.Entity{Kind: moderation.KindHost, Name: a.String()}]
		meet(b, ok)
	}
}

func (s *Set) network(from netip.Prefix, meet func(moderation.Entry, bool)) {
	if len(s.networks) == 0 || !from.IsValid() {
		return
	}
	if b := from.Addr().As16(); from.Bits() >= 48 && b[0] == 0x20 && b[1] == 0x02 { // 6to4 (RFC 3056): whoever has it has that IPv4 address
		s.network(netip.PrefixFrom(netip.AddrFrom4([4]byte(b[2:6])), 32), meet)
	}
	a := from.Addr().Unmap()
	bits := from.Bits()
	if from.Addr().Is4In6() {
		bits -= 96
	}
	for _, n := range s.lengths {
		if p, err := a.Prefix(n); err == nil && n <= bits {
			b, ok := s.networks[p]
			meet(b, ok)
		}
	}
}
