package lane

import (
	"bytes"
	"context"
	"slices"
	"time"

	"curt/internal/clicks"
)

// Head is head for comparison.
type Head struct {
	Size                                                            int
	IsHead, Closing                                                 bool
	Flags                                                           clicks.Flags
	Code, Query, Host, Agent, Referrer, Language, Accept, Forwarded string
}

// ParseHead parses with the page "healthz".
func ParseHead(b []byte) (Head, string) {
	var h head
	v := h.parse(b, []string{"healthz"})
	join := func(lines [][]byte) string { return string(bytes.Join(lines, []byte("|"))) }
	return Head{
		Size: h.size, IsHead: h.isHead, Closing: h.closing, Flags: h.flags, Code: string(h.code), Query: string(h.query),
		Host: string(h.host), Agent: string(h.agent), Referrer: string(h.referrer), Language: string(h.language),
		Accept: join(h.accept), Forwarded: join(h.forwarded),
	}, [...]string{"incomplete", "express", "foreign", "bad"}[v]
}

// HeadParser parses b again and again, as a connection does.
func HeadParser(b []byte) func() {
	var h head
	return func() { h.parse(b, []string{"healthz", "readyz"}) }
}

// At sets the lane's clock as if it had begun so long ago, and sweeps.
func (l *Lane) At(since time.Duration) {
	l.clock.set(l.clock.start.Add(since))
	l.sweep()
}

// Phases counts the connections in each phase.
func (l *Lane) Phases() map[string]int {
	n := map[string]int{}
	l.conns.each(func(c *conn) { n[c.phaseName()]++ })
	return n
}

// Away is Phases of those at net/http.
func (l *Lane) Away() map[string]int {
	l.conns.mu.Lock()
	defer l.conns.mu.Unlock()
	n := map[string]int{}
	for _, c := range l.conns.foreign.all {
		n[c.phaseName()]++
	}
	return n
}

// Owing counts the connections whose request at net/http waits for its client.
func (l *Lane) Owing() (n int) {
	l.conns.mu.Lock()
	defer l.conns.mu.Unlock()
	for _, c := range l.conns.foreign.all {
		if c.owes() {
			n++
		}
	}
	return n
}

func (c *conn) phaseName() string {
	p, _ := c.phase()
	return [...]string{"greeting", "fresh", "heading", "idle", "unsure", "resolving", "writing", "parting", "handing"}[p]
}

// ParseProxy is parseProxy with the client as text.
func ParseProxy(b []byte) (size int, client string, ok bool) {
	n, addr, err := parseProxy(b)
	if addr.IsValid() {
		client = addr.String()
	}
	return n, client, err == nil
}

// Cut cuts off every connection.
func (l *Lane) Cut(ctx context.Context) error { return l.Drain(ctx) }

// Wake wakes every connection, as the sweeper does with the unsure.
func (l *Lane) Wake() { l.conns.each(func(c *conn) { c.wake() }) }

// Follow has a follower read pieces, and returns how many bytes are sound, what it found, and
// behind a zero where requests ended, as far as pieces show it.
func Follow(pieces []string) (n int, found uint8, ends []int) {
	var f follower
	ends = []int{0}
	for _, p := range pieces {
		was := f.at
		some, v := f.follow([]byte(p))
		if n += some; v != sound {
			return n, uint8(v), ends
		}
		if f.at == before && was != before && f.size == 0 {
			ends = append(ends, n)
		}
	}
	return n, 0, ends
}

// EvictTwice has n connections leave and, before any of them was closed, n others. It returns how
// many were chosen twice.
func (l *Lane) EvictTwice(n int) (twice int) {
	s := &l.conns
	s.mu.Lock()
	first := s.evict(n, l.cfg.MaxConns, false)
	second := s.evict(n, l.cfg.MaxConns, false)
	s.mu.Unlock()
	for _, c := range second {
		if slices.Contains(first, c) {
			twice++
		}
	}
	cut(first, &l.stats)
	cut(second, &l.stats)
	return twice
}

// Going is how many were evicted and have not left.
func (l *Lane) Going() int {
	l.conns.mu.Lock()
	defer l.conns.mu.Unlock()
	return l.conns.going
}
