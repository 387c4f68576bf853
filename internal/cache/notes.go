package cache

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"curt/internal/background"
	"curt/internal/cache/keyhash"
	"curt/internal/link"
)

const (
	// resubscribe is how long a subscription may be silent before it is made anew: a
	// connection that is half open ends by nothing else.
	resubscribe = 2 * silence
	// subscribePause is between two attempts to subscribe.
	subscribePause = 500 * time.Millisecond
	// outboxBatch is how many changes one note has at most.
	outboxBatch = 256
)

// Note is what processes tell each other on the bus.
type Note struct {
	// Changes are hints: from now on nothing below their versions may be served. A
	// sequence of 0 means that the sender does not know it yet.
	Changes []link.Change
	// Head is how far the sender knows the change log; empty = it does not say, or nothing was
	// changed yet, and Changes have no sequences.
	Head link.Heads
}

// Bus brings Notes to all processes, the sender included, soon and mostly: a note may be
// lost, come twice or out of order. The change log is the truth. It is safe for many
// goroutines.
type Bus interface {
	// Publish sends a note. It has a short deadline of its own. An error means that
	// others may not hear it.
	Publish(ctx context.Context, n Note) error
	// Subscribe calls hear, from one goroutine, for each note until ctx ends or the
	// subscription does, and returns why. Notes sent from the time that it calls begun
	// on arrive, while the connection lasts. Messages that this release cannot read are
	// passed over.
	Subscribe(ctx context.Context, begun func(), hear func(Note)) error
}

// notes is the exchange of Notes with other processes: a shortcut to the change log.
//
// Invariant: a note moves the position of recent only to the next sequence of a partition; a
// jump, and a subscription that ended, have the log read. So a lost note costs time, and
// never a change.
type notes struct {
	clock   clock
	hash    keyhash.Hasher
	bus     Bus // nil = none
	changes *changes
	recent  *recent
	polls   *polls
	l2      *l2
	log     *slog.Logger
	outbox  chan link.Change // not sent yet
	heard   atomic.Int64     // when the last note came

	count, gaps atomic.Uint64
}

// announce queues changes of this process for the others, and has the log read for their
// sequences. When the queue is full, others hear from the change log.
func (n *notes) announce(changes []link.Change) {
	for _, ch := range changes {
		select {
		case n.outbox <- ch:
		default:
		}
	}
	n.polls.poke()
}

// silent is for how long no note came.
func (n *notes) silent() time.Duration {
	if n.bus == nil {
		return 0
	}
	return time.Duration(n.clock.now() - n.heard.Load())
}

// listen holds a subscription until ctx ends.
func (n *notes) listen(ctx context.Context) {
	for ctx.Err() == nil {
		once, cancel := context.WithCancel(ctx)
		quiet := time.AfterFunc(resubscribe, cancel)
		err := n.bus.Subscribe(once, n.polls.poke, func(note Note) {
			quiet.Reset(resubscribe)
			n.hear(note)
		})
		quiet.Stop()
		cancel()
		n.polls.poke() // notes of the meantime are in the log
		if ctx.Err() != nil {
			return
		}
		n.log.DebugContext(ctx, "the bus was lost", slog.Any("err", err))
		background.Sleep(ctx, subscribePause)
	}
}

// hear takes a note: hints count at once, and a jump of the sequence has the change log
// read. Hints without a sequence follow once more with it, so that not every process has
// to read the log for each.
func (n *notes) hear(note Note) {
	n.count.Add(1)
	n.heard.Store(n.clock.now())
	whole := true
	for _, ch := range note.Changes {
		if ch.Sequence > 0 && !n.recent.advance(n.hash.Of(ch.Key.Domain, ch.Key.Code), ch) {
			whole = false
		}
		n.changes.one(ch.Key, ch.Version)
	}
	if len(note.Head) == 0 {
		return
	}
	if at, begun := n.recent.head(); whole && begun && at.Covers(note.Head) {
		n.polls.confirm()
		return
	}
	n.gaps.Add(1)
	n.polls.poke()
}

// run sends what this process changed, and forbids older versions in L2, until ctx ends. The
// drivers count errors: others hear from the log.
func (n *notes) run(ctx context.Context) {
	for {
		var note Note
		select {
		case <-ctx.Done():
			return
		case ch := <-n.outbox:
			note.Changes = append(note.Changes, ch)
		}
		for len(note.Changes) < outboxBatch && len(n.outbox) > 0 {
			note.Changes = append(note.Changes, <-n.outbox)
		}
		n.publish(ctx, note)
		for _, ch := range note.Changes {
			n.l2.forbid(ctx, ch)
		}
	}
}

func (n *notes) publish(ctx context.Context, note Note) {
	if n.bus != nil {
		_ = n.bus.Publish(ctx, note)
	}
}
