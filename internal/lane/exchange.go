package lane

import (
	"net/netip"
	"sync"
	"time"

	"curt/internal/cache"
	"curt/internal/clicks"
	"curt/internal/lane/head"
	"curt/internal/redirect"
)

// exchange is the memory that one request and its answer need, and an idle connection does not.
type exchange struct {
	in       [4 << 10]byte // twice what browsers send
	head     head.Head
	verdict  head.Verdict
	prepared bool   // out is the prepared answer
	out      []byte // the answer
	sent     int    // bytes of out that are written
	close    bool   // the answer says Connection: close
	outcome  clicks.Outcome
	click    clicks.Raw
	views    []string // of head.Forwarded
	country  [2]byte  // as a trusted proxy states it; zero if none does
}

// prepare sets the answer to a prepared one.
func (x *exchange) prepare(p *cache.Prepared, date []byte, draining bool) {
	x.outcome = clicks.Redirected
	x.close = x.head.Close || draining
	out := append(append(x.out[:0], p.Head...), date...)
	if x.close {
		out = append(out, "\r\nConnection: close"...)
	}
	x.out, x.sent = append(out, p.Tail...), 0
}

// writeRaw writes the answer by one system call, and reports whether that took all of it. The socket's
// buffer is empty unless the client does not read.
func (x *exchange) writeRaw(fd uintptr) bool {
	n, _ := rawWrite(fd, x.out) // -1 with an error
	x.sent = max(n, 0)
	return x.sent == len(x.out)
}

// record records the click of the answered request.
func (x *exchange) record(to redirect.Recorder, domain []byte, client netip.Addr) {
	h := &x.head
	x.click = clicks.Raw{
		Time: time.Now().UnixMilli(), Domain: domain, Code: h.Code, Outcome: x.outcome, Flags: h.Flags,
		Addr: client, Country: x.country, UserAgent: h.Agent, Referrer: h.Referrer, Language: h.Language, Query: h.Query,
	}
	to.Record(&x.click)
}

const (
	// poolShards are the stacks of a pool, so that goroutines on many cores rarely
	// meet at one.
	poolShards = 16
	// perShard bounds each: 3 MB in all. The garbage collector frees the others.
	perShard = 32
)

// pool holds exchanges that are not in use. A sync.Pool would do, if a garbage collection did not
// empty it: then every connection allocates at the same time, and
// pays for it by assisting the collector, up to 40 ms.
type pool struct{ shards [poolShards]poolShard }

type poolShard struct {
	mu   sync.Mutex
	free []*exchange // guarded by mu

	_ [96]byte // shards lie in cache lines of their own
}

// get returns the exchange that was put last, for a connection of the shard.
func (p *pool) get(shard uint32) *exchange {
	s := &p.shards[shard%poolShards]
	s.mu.Lock()
	last := len(s.free) - 1
	if last < 0 {
		s.mu.Unlock()
		return new(exchange)
	}
	found := s.free[last]
	s.free[last] = nil
	s.free = s.free[:last]
	s.mu.Unlock()
	return found
}

// put takes an exchange that is no longer in use; nil is none.
func (p *pool) put(shard uint32, free *exchange) {
	if free == nil {
		return
	}
	s := &p.shards[shard%poolShards]
	s.mu.Lock()
	if len(s.free) < perShard {
		s.free = append(s.free, free)
	}
	s.mu.Unlock()
}
