package redirect

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"
	"time"

	"curt/internal/link"
	"curt/internal/ratelimit"
)

// Bound says what a redirect was refused by.
type Bound uint8

// The bounds of redirects.
const (
	ByNetwork Bound = iota // an IPv4 address or an IPv6 /64
	ByLink
	bounds
)

// Limits bound how many redirects one network and one link get, where an operator asks for it. A nil
// Limits allows everything. It is safe for many goroutines, waits for nothing and allocates nothing.
type Limits struct {
	Network, Link *ratelimit.Throttle // nil = no bound
	Key           ratelimit.HashKey

	refused [bounds]atomic.Uint64
}

// Refused returns how many redirects were answered 429 because of a bound.
func (l *Limits) Refused(by Bound) uint64 { return l.refused[by].Load() }

// Take spends one redirect of the client's network and of the link, or nothing, and returns when the
// next is allowed; 0 = this one is.
func (l *Limits) Take(now time.Time, client netip.Addr, domain link.Domain, code string) (wait time.Duration, by Bound) {
	network := uint64(0)
	if l.Network != nil {
		network = l.networkBucket(client)
		if wait = l.Network.Take(network, now); wait > 0 {
			return wait, ByNetwork
		}
	}
	if l.Link == nil {
		return 0, ByLink
	}
	if wait = l.Link.Take(l.Key.Sum(string(domain), code), now); wait > 0 && l.Network != nil {
		l.Network.GiveBack(network)
	}
	return wait, ByLink
}

// networkBucket hashes what ratelimit.ClientNetwork names.
func (l *Limits) networkBucket(client netip.Addr) uint64 {
	client = client.Unmap()
	addr := client.As16()
	if client.Is6() {
		binary.BigEndian.PutUint64(addr[8:], 0)
	}
	return l.Key.Sum(string(addr[:]), "") // on the stack
}

// limited answers a redirect that was refused. It is not a click.
func (l *Limits) limited(q Request, wait time.Duration, by Bound) Outcome {
	l.refused[by].Add(1)
	out := refuse(Limited, q)
	out.RetryAfter, out.Click = seconds(wait), 0
	return out
}

// seconds is the value of Retry-After.
func seconds(wait time.Duration) int { return max(1, int((wait+time.Second-1)/time.Second)) }
