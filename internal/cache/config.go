package cache

import (
	"context"
	"log/slog"
	"time"

	"curt/internal/cache/issued"
	"curt/internal/link"
)

// Source is what a link store offers to the cache.
type Source interface {
	// Lookup may lag by Config.Lag, but ErrNotFound is the primary's word.
	Lookup(ctx context.Context, k link.Key) (link.Target, error)
	// Get never lags: the cache asks it for keys that were changed a moment ago.
	Get(ctx context.Context, k link.Key) (link.Link, error)
}

// ChangeLog is the part of a link store that Follow polls.
type ChangeLog interface {
	Changes(ctx context.Context, after link.Position, n int) ([]link.Change, link.Position, error)
	Head(ctx context.Context) (link.Position, error)
}

// Config of a Tiered. The zero value is usable; every zero field means its default.
type Config struct {
	// Bytes is the budget of L1, bookkeeping included. Default 64 MiB: 100,000
	// links of 100-byte destinations fit twice.
	Bytes uint64

	// Fresh is how long a link is served without asking again, each time ±10 % so
	// that links loaded together do not fall due together; 1 s while nothing is heard of changes. Default 5 min.
	Fresh time.Duration
	// Stale is how long after its load a link may be served while the source cannot
	// be asked. Default 24 h.
	Stale time.Duration
	// Missing is how long "unknown" is believed. Default 60 s; 1 s while nobody is heard of
	// those who make links.
	Missing time.Duration

	// LoadTimeout is a load's own deadline; the caller's does not count, because
	// others wait for the same load. Default 1 s.
	LoadTimeout time.Duration
	// Lag is how far Source.Lookup may be behind. 0 = never, as with SQLite.
	Lag time.Duration
	// Refreshers is how many refreshes run at once. Default 4.
	Refreshers int

	// Shared says that other processes write to the same store, so that Follow must
	// run: without a poll in the last 5 s nothing counts as never issued.
	Shared bool
	// L2 is what processes share of their links; nil = nothing. It needs Shared and Follow:
	// nothing of it is believed that the change log does not vouch for.
	L2 Shared
	// Bus brings the changes of other processes before the change log is read again; nil =
	// the log alone. Follow uses it.
	Bus Bus
	// Unwritten says that processes share links that the source does not have yet (Accepted). Then "not found" is shared
	// by nobody.
	Unwritten bool
	// Issued tells codes that were never issued; nil = all are asked for.
	Issued *issued.Codes

	// Admit returns what of a target enters L1, once per load; nil = all of it as it
	// is. It must be pure and must not change the version.
	Admit func(t link.Target) link.Target
	// OnChanges is called with every change that Changed is told, and with nil when changes were
	// missed and nobody knows which. It must not block. Nil = nobody listens.
	OnChanges func([]link.Change)

	// Prepare makes what an entry keeps of its answer, once, when the entry enters
	// L1; nil = nothing. It must be pure and must not keep the target.
	Prepare func(k link.Key, t link.Target) Prepared

	// Log takes what goes wrong in the background; nil = discard.
	Log *slog.Logger
}

// Prepared is an answer made ahead: the bytes before and after the value of the
// Date header, and when it holds. Heads are few and shared between entries, so they
// do not count in the budget. The zero Prepared is none.
type Prepared struct {
	Head, Tail  string
	From, Until int64 // Unix milliseconds, Until excluded; 0 = no bound
}

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.Fresh, 5*time.Minute)
	def(&c.Stale, 24*time.Hour)
	def(&c.Missing, time.Minute)
	def(&c.LoadTimeout, time.Second)
	if c.Bytes == 0 {
		c.Bytes = 64 << 20
	}
	if c.Refreshers == 0 {
		c.Refreshers = 4
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
