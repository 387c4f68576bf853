package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"curt/internal/feed"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

const (
	// settle is how old a link is before the walk reads it: creates that run side by
	// side are stored by then, in whatever order, so that few come late.
	settle = time.Second

	// overlap is how far a start goes back: what came late and was not indexed when
	// the process was killed is found there. A request that is still being stored
	// after so long has been given up by everybody.
	overlap = 10 * time.Minute

	// Where others store links too, lookBack is how much of what the walk has passed is read
	// again every lookBackEvery: for clocks that differ by less, and commits that are late.
	lookBack      = 15 * time.Second
	lookBackEvery = 5 * time.Second

	walkPage    = 256  // links in one read of the store: about 6 ms of one reader
	changesPage = 256  // changes in one batch; each is one more read
	batchDocs   = 4096 // documents in one batch while there is much to do
)

// IndexerConfig is what NewIndexer needs. Links and Index are required.
type IndexerConfig struct {
	Links link.Store
	Index Index

	// Shared says that other processes store links too. They tell nobody, and their ids
	// are by their clocks: the walk reads its last seconds again and again then.
	Shared bool

	// Redirects returns how many visitors were answered so far: while they are many,
	// the indexer waits. Nil = nobody counts.
	Redirects func() uint64

	// Work, if set, is called when the indexer begins to compute, and done when it rests.
	Work func() (done func())

	Log *slog.Logger // nil = none
}

// Indexer keeps an Index up to date with a link store, behind it. It finds what is
// new in three ways, none of which a create waits for:
//
//   - a walk through the store by id, which is by age, up to a second ago;
//   - what is stored with an id that the walk has passed, which Stored tells, or, of
//     what other processes store, a second walk through the last seconds;
//   - the change log, for changed and deleted links.
//
// Each batch moves the position with it, so a kill at any moment loses at most what
// Stored told last; the next start walks once more through the last minutes.
type Indexer struct {
	cfg  IndexerConfig
	pace pace
	late lateIDs

	indexed  atomic.Uint64
	complete atomic.Bool

	stopped, stuck repeatlog.Condition

	// Owned by Run.
	at       Position
	log      feed.Follower[link.Sequence, link.Change]
	cursor   link.Cursor // where the walk goes on within since; "" = at its beginning
	since    link.ID
	again    []idSpan  // to be walked once more
	back     time.Time // when the walk's last seconds were read again
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
	if c.Work == nil {
		c.Work = func() func() { return func() {} }
	}
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

// Stored tells that a link with this id is durable now. It never blocks; many
// goroutines may call it.
func (x *Indexer) Stored(id link.ID) {
	x.pace.creates.Add(1)
	x.late.stored(id)
}

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
		sleep(ctx, wait)
	}
	return nil
}

// recover makes the index one that can go on.
func (x *Indexer) recover(ctx context.Context, err error) {
	if again, due := x.stopped.Met(time.Now()); due {
		x.cfg.Log.ErrorContext(ctx, "search index stopped, it is tried again", slog.Any("err", err), again)
	}
	if errors.Is(err, ErrDamaged) || errors.Is(err, errLost) {
		if err := x.cfg.Index.Reset(ctx); err != nil {
			if again, due := x.stuck.Met(time.Now()); due {
				x.cfg.Log.ErrorContext(ctx, "empty the search index", slog.Any("err", err), again)
			}
		}
	}
}

// errLost: the change log was trimmed behind the position, so nobody knows what changed.
var errLost = errors.New("changes were lost")

// follow indexes until something fails.
func (x *Indexer) follow(ctx context.Context) error {
	x.log = x.follower()
	if err := x.begin(ctx); err != nil {
		return err
	}
	for {
		x.pace.wait(ctx, x.cfg.Redirects, func() bool { return false })
		busy := false
		for _, step := range []func(context.Context) (bool, error){x.walk, x.walkAgain, x.changes, x.tidy} {
			began := time.Now()
			done := x.cfg.Work()
			more, err := step(ctx)
			done()
			if err != nil {
				return err
			}
			if busy = busy || more; more {
				x.pace.rest(ctx, time.Since(began))
			}
		}
		if sum, due := x.stopped.Over(time.Now()); due {
			x.cfg.Log.InfoContext(ctx, "search index goes on", sum)
		}
		if !busy {
			sleep(ctx, tick)
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
	x.complete.Store(x.at.Filled)
	x.late.passed(x.at.After.Time())
	x.cursor, x.since, x.again, x.purge, x.filled = "", after(x.at.After), nil, time.Now(), 0
	x.replaced = true // by the process before, perhaps
	if x.at == (Position{}) {
		// What changes while the walk goes on is read again.
		if x.at.Changes, err = x.cfg.Links.Head(ctx); err != nil {
			return err
		}
		x.told = time.Now()
		x.cfg.Log.InfoContext(ctx, "filling the search index")
		return nil
	}
	last := min(x.at.After.Time().UnixMilli(), time.Now().UnixMilli())
	if from := firstID(time.UnixMilli(last).Add(-overlap)); compare(from, x.at.After) < 0 {
		x.again = append(x.again, idSpan{from, x.at.After})
	}
	return nil
}

// walk indexes links that are new, up to settle ago.
func (x *Indexer) walk(ctx context.Context) (more bool, err error) {
	horizon := time.Now().Add(-settle)
	x.late.passed(horizon) // before the store is read: whoever is stored after that is told
	batch := Batch{Position: x.at}
	cursor, since := x.cursor, x.since
	for len(batch.Docs) < batchDocs {
		began, filter := time.Now(), link.Filter{Since: since, Oldest: true}
		page, err := x.cfg.Links.List(ctx, filter, link.Page{After: cursor, Limit: walkPage})
		if err != nil {
			return false, fmt.Errorf("walk the links: %w", err)
		}
		cursor = page.Next
		for i := range page.Links {
			l := &page.Links[i]
			if l.ID.Time().After(horizon) {
				cursor, page.Next = "", ""
				break
			}
			batch.Docs = append(batch.Docs, NewDocument(l))
			batch.Position.After = l.ID
		}
		if more = page.Next != ""; !more {
			since = after(batch.Position.After)
			break
		}
		x.pace.rest(ctx, time.Since(began))
	}
	if !more {
		batch.Position.Filled = true
	}
	if len(batch.Docs) > 0 || batch.Position != x.at {
		if err := x.apply(ctx, batch); err != nil {
			return false, err
		}
	}
	x.cursor, x.since = cursor, since
	return more, nil
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

// walkAgain indexes what came late.
func (x *Indexer) walkAgain(ctx context.Context) (more bool, err error) {
	x.again = append(x.again, x.late.take(x.at.After)...)
	if x.cfg.Shared && x.at.Filled && len(x.again) == 0 && time.Since(x.back) >= lookBackEvery {
		x.back = time.Now()
		x.again = append(x.again, idSpan{firstID(x.at.After.Time().Add(-lookBack)), x.at.After})
	}
	if len(x.again) == 0 {
		return false, nil
	}
	slices.SortFunc(x.again, func(a, b idSpan) int { return compare(a.first, b.first) })
	filter := link.Filter{Since: x.again[0].first, Oldest: true}
	page, err := x.cfg.Links.List(ctx, filter, link.Page{Limit: walkPage})
	for err == nil && len(page.Links) == 0 && page.Next != "" {
		page, err = x.cfg.Links.List(ctx, filter, link.Page{After: page.Next, Limit: walkPage})
	}
	if err != nil {
		return false, fmt.Errorf("walk the links once more: %w", err)
	}
	if err := x.add(ctx, page.Links); err != nil {
		return false, err
	}
	if page.Next == "" {
		x.again = nil // that was all there is
		return false, nil
	}
	x.again = cutBehind(x.again, page.Links[len(page.Links)-1].ID)
	return len(x.again) > 0, nil
}

// add indexes those of some links that the walk has passed and the index lacks.
func (x *Indexer) add(ctx context.Context, links []link.Link) error {
	ids := make([]link.ID, 0, len(links))
	for i := range links {
		if compare(links[i].ID, x.at.After) <= 0 {
			ids = append(ids, links[i].ID)
		}
	}
	missing, err := x.cfg.Index.Missing(ctx, ids)
	if err != nil || len(missing) == 0 {
		return err
	}
	batch := Batch{Position: x.at}
	for i := range links {
		if slices.Contains(missing, links[i].ID) {
			batch.Docs = append(batch.Docs, NewDocument(&links[i]))
		}
	}
	return x.apply(ctx, batch)
}

// changes indexes what the change log says.
func (x *Indexer) changes(ctx context.Context) (more bool, err error) { return x.log.Step(ctx) }

// follower is the index as one that follows the change log. Where changes were lost, it is filled anew.
func (x *Indexer) follower() feed.Follower[link.Sequence, link.Change] {
	return feed.Follower[link.Sequence, link.Change]{
		Name: "search index", Page: changesPage,
		Log: feed.Log[link.Sequence, link.Change]{
			Read: x.cfg.Links.Changes, Head: x.cfg.Links.Head, At: func(c *link.Change) link.Sequence { return c.Sequence },
		},
		Position: func(context.Context) (link.Sequence, bool, error) { return x.at.Changes, true, nil },
		Apply:    x.applyChanges,
		Rebuild:  func(context.Context) error { return errLost },
	}
}

func (x *Indexer) applyChanges(ctx context.Context, changes []link.Change, to link.Sequence) error {
	batch := Batch{Position: x.at}
	batch.Position.Changes = to
	links, err := link.GetMany(ctx, x.cfg.Links, changed(changes))
	if err != nil {
		return fmt.Errorf("read what changed: %w", err)
	}
	for i := range links {
		switch l := &links[i]; {
		case l.ID.IsZero():
		case compare(l.ID, x.at.After) > 0: // the walk will come to it
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
