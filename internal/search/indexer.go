package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"curt/internal/background"
	"curt/internal/feed"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

const (
	// overlap is how far the first start goes back of a release that reads creates, over an index of
	// one that read links by id.
	overlap = 10 * time.Minute

	walkPage    = 256          // links in one read of the store: about 6 ms of one reader
	changesPage = link.MaxPage // changes in one batch; each is one more read
	batchDocs   = 4096         // documents in one batch while there is much to do
)

// IndexerConfig is what NewIndexer needs. Links, Creates and Index are required.
type IndexerConfig struct {
	Links   link.Store
	Creates link.CreateLog // of Links
	Index   Index

	// Redirects returns how many visitors were answered so far: while they are many,
	// the indexer waits. Nil = nobody counts.
	Redirects func() uint64

	Yielder background.Yielder // boosts batches; nil = nothing is scheduled

	Log *slog.Logger // nil = none
}

// Indexer keeps an Index up to date with a link store, behind it. It walks through the store once,
// and follows what became visible since it began: creates of counted codes, and the change log for
// all else. No create waits for it.
//
// Each batch moves the position with it, so that a kill at any moment loses nothing.
type Indexer struct {
	cfg  IndexerConfig
	pace background.Pace

	indexed  atomic.Uint64
	complete atomic.Bool

	stopped, stuck repeatlog.Condition

	// Owned by Run.
	at       Position
	log      feed.Follower[link.Position, link.Change]
	cursor   link.Cursor // where the walk goes on within since; "" = at its beginning
	since    link.ID
	purge    time.Time
	replaced bool // something waits for a purge
	told     time.Time
	filled   int // documents of the first walk
}

// NewIndexer returns an Indexer that begins with Run.
func NewIndexer(c IndexerConfig) *Indexer {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Redirects == nil {
		c.Redirects = func() uint64 { return 0 }
	}
	c.Yielder = background.Or(c.Yielder)
	return &Indexer{cfg: c}
}

// IndexerStats are what an Indexer has done since it began.
type IndexerStats struct {
	Indexed  uint64 // links, one that changed twice counted twice
	Complete bool   // the whole store was read once; until then searches miss links
}

// Stats returns the counters; it may be called at any time.
func (x *Indexer) Stats() IndexerStats {
	return IndexerStats{Indexed: x.indexed.Load(), Complete: x.complete.Load()}
}

// Stored tells that a link is durable now: while there are many, the indexer waits. It never blocks;
// many goroutines may call it.
func (x *Indexer) Stored(link.ID) { x.pace.Created() }

// Run indexes until ctx ends, then returns nil. What fails is logged and tried again;
// an index that is damaged is filled anew.
func (x *Indexer) Run(ctx context.Context) error {
	for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, time.Minute) {
		began := time.Now()
		if err := x.follow(ctx); ctx.Err() == nil {
			x.recover(ctx, err)
		}
		if time.Since(began) > time.Minute {
			wait = time.Second
		}
		background.Sleep(ctx, wait)
	}
	return nil
}

// recover makes the index one that can go on.
func (x *Indexer) recover(ctx context.Context, err error) {
	x.stopped.Log(ctx, time.Now(), x.cfg.Log, slog.LevelError, "search indexing failed, retrying", err)
	if errors.Is(err, ErrDamaged) || errors.Is(err, errLost) {
		if err := x.cfg.Index.Reset(ctx); err != nil {
			x.stuck.Log(ctx, time.Now(), x.cfg.Log, slog.LevelError, "clearing the search index failed, retrying", err)
		}
	}
}

// errLost: a log was trimmed behind the position, so nobody knows what changed.
var errLost = errors.New("changes were lost")

// follow indexes until something fails.
func (x *Indexer) follow(ctx context.Context) error {
	x.log = x.follower()
	if err := x.begin(ctx); err != nil {
		return err
	}
	for {
		x.pace.Wait(ctx, x.cfg.Redirects, func() bool { return false })
		busy := false
		for _, step := range []func(context.Context) (bool, error){x.walk, x.creates, x.changes, x.tidy} {
			began := time.Now()
			done := x.cfg.Yielder.Boost()
			more, err := step(ctx)
			done()
			if err != nil {
				return err
			}
			if busy = busy || more; more {
				x.pace.Pause(ctx, time.Since(began))
			}
		}
		x.stopped.LogRecovery(ctx, time.Now(), x.cfg.Log, "search indexing recovered")
		if !busy {
			background.Sleep(ctx, background.Tick)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// begin finds where the index stands.
func (x *Indexer) begin(ctx context.Context) (err error) {
	if x.at, err = x.cfg.Index.Position(ctx); err != nil {
		return err
	}
	x.cursor, x.purge, x.filled = "", time.Now(), 0
	x.replaced = true // by the process before, perhaps
	if x.at == (Position{}) {
		// What changes while the walk goes on is read again.
		if x.at.Changes, err = x.cfg.Links.Head(ctx); err != nil {
			return err
		}
		x.told = time.Now()
		x.cfg.Log.InfoContext(ctx, "filling the search index")
	}
	if x.at.Creates == "" {
		if x.at.Creates, err = x.cfg.Creates.CreatesHead(ctx); err != nil {
			return err
		}
		last := min(x.at.After.Time().UnixMilli(), time.Now().UnixMilli())
		x.at.After, x.at.Filled = firstID(time.UnixMilli(last).Add(-overlap)), false
	}
	x.complete.Store(x.at.Filled)
	x.since = after(x.at.After)
	return nil
}

// walk indexes all links that there are, once.
func (x *Indexer) walk(ctx context.Context) (more bool, err error) {
	if x.at.Filled {
		return false, nil
	}
	batch, cursor := Batch{Position: x.at}, x.cursor
	for more = true; more && len(batch.Docs) < batchDocs; {
		began, filter := time.Now(), link.Filter{Since: x.since, Oldest: true}
		page, err := x.cfg.Links.List(ctx, filter, link.Page{After: cursor, Limit: walkPage})
		if err != nil {
			return false, fmt.Errorf("walk the links: %w", err)
		}
		for i := range page.Links {
			batch.Docs = append(batch.Docs, NewDocument(&page.Links[i]))
			batch.Position.After = page.Links[i].ID
		}
		if cursor, more = page.Next, page.Next != ""; more {
			x.pace.Pause(ctx, time.Since(began))
		}
	}
	batch.Position.Filled = !more
	if err := x.apply(ctx, batch); err != nil {
		return false, err
	}
	x.cursor = cursor
	return more, nil
}

// creates indexes links with counted codes that became visible since the walk began.
func (x *Indexer) creates(ctx context.Context) (more bool, err error) {
	if !x.at.Filled {
		return false, nil // the position is from before the walk
	}
	batch := Batch{Position: x.at}
	for more = true; more && len(batch.Docs) < batchDocs; {
		began := time.Now()
		page, next, err := x.cfg.Creates.Creates(ctx, batch.Position.Creates, walkPage)
		switch {
		case errors.Is(err, link.ErrConflict):
			return false, fmt.Errorf("%w: %w", errLost, err)
		case err != nil:
			return false, fmt.Errorf("read creates: %w", err)
		}
		for i := range page {
			if page[i].Status != link.Deleted {
				batch.Docs = append(batch.Docs, NewDocument(&page[i]))
			}
		}
		batch.Position.Creates = next
		if more = len(page) > 0; more {
			x.pace.Pause(ctx, time.Since(began))
		}
	}
	if len(batch.Docs) == 0 { // the position goes with the next batch
		x.at.Creates = batch.Position.Creates
		return more, nil
	}
	return more, x.apply(ctx, batch)
}

// apply sends a batch and moves on.
func (x *Indexer) apply(ctx context.Context, b Batch) error {
	if err := x.cfg.Index.Apply(ctx, b); err != nil {
		return err
	}
	filling := !x.at.Filled
	x.at = b.Position
	x.indexed.Add(uint64(len(b.Docs)))
	x.complete.Store(x.at.Filled)
	if !filling {
		return nil
	}
	x.filled += len(b.Docs)
	if b.Position.Filled || time.Since(x.told) > 10*time.Second {
		x.told = time.Now()
		x.cfg.Log.InfoContext(ctx, "search index", slog.Int("links", x.filled), slog.Bool("complete", b.Position.Filled))
	}
	return nil
}

// changes indexes what the change log says.
func (x *Indexer) changes(ctx context.Context) (more bool, err error) { return x.log.Step(ctx) }

// follower is the index as one that follows the change log. Where changes were lost, it is filled anew.
func (x *Indexer) follower() feed.Follower[link.Position, link.Change] {
	return feed.Follower[link.Position, link.Change]{
		Name: "search index", Page: changesPage,
		Log:      feed.Log[link.Position, link.Change]{Read: x.cfg.Links.Changes, Head: x.cfg.Links.Head},
		Position: func(context.Context) (link.Position, bool, error) { return x.at.Changes, true, nil },
		Apply:    x.applyChanges,
		Rebuild:  func(context.Context) error { return errLost },
	}
}

func (x *Indexer) applyChanges(ctx context.Context, changes []link.Change, to link.Position) error {
	batch := Batch{Position: x.at}
	batch.Position.Changes = to
	links, err := link.GetMany(ctx, x.cfg.Links, changed(changes))
	if err != nil {
		return fmt.Errorf("read changes: %w", err)
	}
	for i := range links {
		switch l := &links[i]; {
		case l.ID.IsZero():
		case !x.at.Filled && bytes.Compare(l.ID[:], x.at.After[:]) > 0: // the walk will come to it
		case l.Status == link.Deleted:
			batch.Gone = append(batch.Gone, l.ID)
		default:
			batch.Docs = append(batch.Docs, NewDocument(l))
		}
	}
	x.replaced = x.replaced || len(batch.Docs)+len(batch.Gone) > 0
	return x.apply(ctx, batch)
}

// changed returns each key once: it is read as it stands now.
func changed(changes []link.Change) (keys []link.Key) {
	seen := make(map[link.Key]bool, len(changes))
	for _, c := range changes {
		if !seen[c.Key] {
			seen[c.Key] = true
			keys = append(keys, c.Key)
		}
	}
	return keys
}

// purgeEvery is how long words of a deleted link may stay in the index's files.
const purgeEvery = 10 * time.Minute

// tidy lets the index do a step of its own work.
func (x *Indexer) tidy(ctx context.Context) (more bool, err error) {
	purge := x.replaced && x.at.Filled && time.Since(x.purge) > purgeEvery
	more, err = x.cfg.Index.Tidy(ctx, purge)
	if purge && !more && err == nil {
		x.purge, x.replaced = time.Now(), false
	}
	return more, err
}

// after returns the id that follows.
func after(id link.ID) link.ID {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i]++; id[i] != 0 {
			return id
		}
	}
	return link.ID(bytes.Repeat([]byte{0xff}, len(id)))
}

// firstID is not behind any id of the time or a later one.
func firstID(t time.Time) (id link.ID) {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(0, t.UnixMilli()))<<16)
	copy(id[:6], ms[:6])
	return id
}
