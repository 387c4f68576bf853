// Package fold counts what the click log holds. The newest counts are in memory; every 10 s
// they are written to a rollup.Store together with the position in the log that they reach.
//
// Read fold.go first (the loop and the writer), then aggregate.go (counting) and pending.go
// (what leaves memory: batches, and the part that readers of statistics add).
package fold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"curt/internal/background"
	"curt/internal/clicks/clicklog"
	"curt/internal/clicks/groups"
	"curt/internal/clicks/rollup"
	"curt/internal/clicks/useragent"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

// Config says what Fold reads and where it writes.
type Config struct {
	Log    *clicklog.Log
	Store  rollup.Store
	Logger *slog.Logger // nil = none

	// Groups, if set, returns which group each link belongs to, in order; "" = none. What
	// happens to a link counts for its group as well, under GroupKey. A link is asked for
	// now and then, so its group MUST stay the same. While it fails, clicks wait in the log.
	Groups func(ctx context.Context, keys []link.Key) ([]string, error)

	// Shared, if set, says that other processes write to the store, too: it returns up to
	// when all that any of them keeps is counted for good, given the same of this Fold;
	// zero = not known. Then a batch is written each Every, also when nothing happened, so
	// that the others know.
	Shared func(own time.Time) time.Time

	// Every is how long counts stay in memory before they are written; 0 = 10 s.
	// Statistics include what is in memory, so it does not change their freshness.
	Every time.Duration
	// MaxBytes is the memory of counts that makes a batch due early; 0 = 12 MiB.
	// While one batch is written another fills, so twice that may be held.
	MaxBytes int
	// Paused keeps Fold from reading, for measurements: the log grows.
	Paused bool
	// Yielder schedules the two goroutines that compute for long, Run's and the writer's. Both
	// yield every 50 µs. Nil = nothing is scheduled.
	Yielder background.Yielder
}

// Fold counts what the log holds. It keeps the newest counts in memory, writes
// them in batches together with its position, and hands the memory's part to
// readers of statistics.
type Fold struct {
	cfg    Config
	parser *useragent.Parser // owned by Run
	groups *groups.Cache     // owned by Run
	held   *clicklog.Block   // owned by Run; read and not yet counted, because its groups are not known

	loading, reading, learning, writing repeatlog.Condition

	mu        sync.RWMutex
	active    *aggregate       // guarded by mu, filled by Run; nil until the state is loaded
	frozen    *aggregate       // guarded by mu; being written, unchanged
	freshness rollup.Freshness // guarded by mu
	stored    rollup.Freshness // guarded by mu; of what is written
	unstored  time.Time        // guarded by mu; since when writing fails; zero = it does not
	stats     Stats            // guarded by mu
}

// Stats are counters since the start.
type Stats struct {
	Events      uint64
	Batches     uint64
	BatchErrors uint64
	Damages     uint64            // places of the log that could not be read
	Read        clicklog.Position // everything before is counted, in memory at least
	Written     clicklog.Position // everything before is counted for good

	// Unstored is since when counts cannot be written, zero while they can: then they are in
	// memory and in the log alone.
	Unstored time.Time
}

// New returns a Fold that begins with Run.
func New(c Config) *Fold {
	c.Every = cmp.Or(c.Every, 10*time.Second)
	c.MaxBytes = cmp.Or(c.MaxBytes, 12<<20)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Yielder = background.Or(c.Yielder)
	return &Fold{cfg: c, parser: useragent.NewParser(), groups: groups.New(c.Groups)}
}

// Changed has the groups of links asked for again before their next clicks are counted: a link may
// belong to another by now. No links = any may have changed. It never waits.
func (f *Fold) Changed(keys ...link.Key) { f.groups.Changed(keys...) }

// foldTick bounds how long Fold sleeps when the log does not wake it.
const foldTick = time.Second

// Run folds until ctx ends, then counts what the log still holds and writes it.
// What cannot be written in closing time is counted after the next start. It
// returns early only when another Fold wrote to the store.
func (f *Fold) Run(ctx context.Context) error {
	state, ok := f.load(ctx)
	if !ok {
		return nil
	}
	f.cfg.Log.Commit(state.Position)
	f.cfg.Log.ReportMissing(ctx, state.Position)
	f.mu.Lock()
	f.active = newAggregate(rollup.State{Generation: state.Generation + 1, Position: state.Position})
	f.stored.Updated = time.Now().UTC()
	f.stats.Read, f.stats.Written = state.Position, state.Position
	f.mu.Unlock()
	if f.cfg.Paused {
		<-ctx.Done()
		return nil
	}
	f.cfg.Yielder.LowerPriority()
	reader := f.cfg.Log.Read(state.Position)
	defer reader.Close()
	w := startWriter(ctx, f)
	err := f.loop(ctx, reader, w)
	return errors.Join(err, w.stop())
}

// load asks the store until it answers; ok is false when ctx ended first.
func (f *Fold) load(ctx context.Context) (state rollup.State, ok bool) {
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		state, err := f.cfg.Store.Load(ctx)
		if err == nil {
			return state, true
		}
		if ctx.Err() != nil {
			return rollup.State{}, false
		}
		f.loading.Log(ctx, time.Now(), f.cfg.Logger, slog.LevelError, "loading the fold position failed, retrying", err)
		background.Sleep(ctx, wait)
	}
}

// loop reads and writes until ctx ends.
func (f *Fold) loop(ctx context.Context, r *clicklog.Reader, w *writer) error {
	tick := time.NewTicker(foldTick)
	defer tick.Stop()
	due := time.Now().Add(f.cfg.Every)
	if f.cfg.Shared != nil {
		due = time.Now() // the others wait for a word of ours
	}
	for {
		done := f.cfg.Yielder.Boost()
		caughtUp := f.read(ctx, r)
		done()
		f.recovered(ctx, time.Now())
		if now := time.Now(); !w.busy() && (now.After(due) || f.full()) {
			if a := f.freeze(); a != nil {
				w.write(a)
			}
			due = now.Add(f.cfg.Every)
		}
		if !caughtUp && !f.full() && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return f.finish(r, w)
		case err := <-w.failed:
			return err
		case <-w.done:
		case <-f.cfg.Log.Grown():
		case <-tick.C:
		}
	}
}

// recovered logs the conditions that have ended.
func (f *Fold) recovered(ctx context.Context, now time.Time) {
	for what, c := range map[string]*repeatlog.Condition{
		"loading the fold position failed, retrying": &f.loading, "read click log": &f.reading,
		"resolving workspaces of clicks failed, clicks wait to be counted": &f.learning, "writing roll-ups failed, retrying": &f.writing,
	} {
		c.LogRecovery(ctx, now, f.cfg.Logger, "counting clicks recovered", slog.String("over", what))
	}
}

// finish counts the rest of the log and hands it to the writer, whose stop waits.
func (f *Fold) finish(r *clicklog.Reader, w *writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), closingTime)
	defer cancel()
	for !f.read(ctx, r) {
		if f.full() || ctx.Err() != nil {
			break // the next start goes on from here
		}
	}
	w.idle.Wait()
	if w.busy() {
		return nil // time was up before the batch was written
	}
	if a := f.freeze(); a != nil {
		w.write(a)
	}
	return nil
}

// read folds blocks until there are no more (true), or until memory is full or ctx
// ends (false).
func (f *Fold) read(ctx context.Context, r *clicklog.Reader) (caughtUp bool) {
	for !f.full() {
		mark := f.cfg.Log.Mark() // before the end is looked for
		b, err := f.next(r)
		var damage *clicklog.DamageError
		switch {
		case errors.Is(err, io.EOF):
			f.seen(r.Position(), mark)
			return true
		case errors.As(err, &damage):
			f.skip(ctx, r, damage)
			continue
		case err != nil:
			f.reading.Log(ctx, time.Now(), f.cfg.Logger, slog.LevelError, "read click log", err)
			return true // the tick tries again
		}
		if err := f.groups.Learn(ctx, &b); err != nil && ctx.Err() != nil { // the server stops, and counts them when it starts
			f.held = &b
			return false
		} else if err != nil {
			f.learning.Log(ctx, time.Now(), f.cfg.Logger, slog.LevelError, "resolving workspaces of clicks failed, clicks wait to be counted", err)
			f.held = &b
			return true // the tick tries again
		}
		f.foldBlock(ctx, &b)
		if ctx.Err() != nil {
			return false
		}
	}
	return false
}

// next returns the block that is held, or else the next one of the log.
func (f *Fold) next(r *clicklog.Reader) (clicklog.Block, error) {
	if b := f.held; b != nil {
		f.held = nil
		return *b, nil
	}
	return r.Next()
}

// foldSlice is how many events are counted between two pauses, for readers of statistics and
// for redirects: about 30 µs.
const foldSlice = 32

// foldBlock counts a block; afterwards the position is behind it.
func (f *Fold) foldBlock(ctx context.Context, b *clicklog.Block) {
	n := 0
	f.mu.Lock()
	err := b.Events(func(e *clicklog.Event) error {
		if n++; n%foldSlice == 0 {
			f.mu.Unlock()
			f.cfg.Yielder.Yield()
			f.mu.Lock()
		}
		f.active.add(e, f.parser, f.groups.Of(e))
		return nil
	})
	f.active.state.Position = b.Next
	f.stats.Events += uint64(n)
	f.stats.Read = b.Next
	if err != nil {
		f.stats.Damages++
	}
	f.mu.Unlock()
	if err != nil {
		f.cfg.Log.NoteDamage(b.At)
		f.cfg.Logger.ErrorContext(ctx, "click log block", slog.Any("err", err), slog.String("at", b.At.String()))
	}
}

// skip passes over a damage.
func (f *Fold) skip(ctx context.Context, r *clicklog.Reader, damage *clicklog.DamageError) {
	r.Skip()
	f.mu.Lock()
	f.stats.Damages++
	f.active.state.Position = r.Position()
	f.stats.Read = r.Position()
	f.mu.Unlock()
	f.cfg.Logger.ErrorContext(ctx, "click log is damaged, skipping clicks in the damaged part",
		slog.Any("err", damage), slog.String("next", r.Position().String()))
}

// seen notes that Fold is at the log's end.
func (f *Fold) seen(at clicklog.Position, mark clicklog.Watermark) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now().UTC()
	f.freshness.Updated = now
	f.freshness.Complete = notAhead(f.freshness.Complete, now)
	if at.Compare(mark.Position) >= 0 && mark.Time.After(f.freshness.Complete) {
		f.freshness.Complete = notAhead(mark.Time, now)
	}
}

// notAhead is up to when counts are complete at now. A clock that was ahead and came back
// has promised a time that is still to come, in which there will be clicks: then nothing
// is known until the log promises anew, at the next drain.
func notAhead(complete, now time.Time) time.Time {
	if complete.After(now) {
		return time.Time{}
	}
	return complete
}

// full reports whether the counts in memory have reached their bound.
func (f *Fold) full() bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.active.weight() >= f.cfg.MaxBytes
}

// freeze makes the active counts a batch and returns it; nil if there is nothing to write.
// The batch before must be written.
func (f *Fold) freeze() *aggregate {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.active.state.Position == f.active.from && f.cfg.Shared == nil {
		return nil
	}
	f.frozen = f.active
	f.frozen.complete = f.freshness.Complete
	f.active = newAggregate(rollup.State{Generation: f.frozen.state.Generation + 1, Position: f.frozen.state.Position})
	return f.frozen
}

// Freshness returns how new the counts are. While they cannot be written it is that of what
// is: what is in memory alone ends with the process, and may never be written.
func (f *Fold) Freshness() rollup.Freshness {
	f.mu.RLock()
	fresh := f.freshness
	if !f.unstored.IsZero() {
		fresh = f.stored
	}
	f.mu.RUnlock()
	fresh.Complete = notAhead(fresh.Complete, time.Now().UTC()) // the clock may have come back since
	if f.cfg.Shared != nil {
		fresh.Complete = f.cfg.Shared(fresh.Complete)
	}
	return fresh
}

// Stats returns the counters.
func (f *Fold) Stats() Stats {
	f.mu.RLock()
	defer f.mu.RUnlock()
	stats := f.stats
	stats.Unstored = f.unstored
	return stats
}

const (
	retryFirst  = 100 * time.Millisecond
	retryMost   = 5 * time.Second
	closingTime = 3 * time.Second // what shutdown leaves for the last batch
)

// writer writes frozen counts beside Fold's loop, so that counting goes on
// meanwhile. At most one batch is under way.
type writer struct {
	fold   *Fold
	ctx    context.Context // of the store's calls; outlives Run's by closingTime
	cancel context.CancelFunc
	jobs   chan *aggregate
	done   chan struct{} // a batch was written
	failed chan error    // another Fold wrote; nothing can be done any more
	idle   sync.WaitGroup
	ended  sync.WaitGroup
}

func startWriter(ctx context.Context, f *Fold) *writer {
	w := &writer{fold: f, jobs: make(chan *aggregate, 1), done: make(chan struct{}, 1), failed: make(chan error, 1)}
	w.ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.ended.Go(func() {
		f.cfg.Yielder.LowerPriority()
		stop := context.AfterFunc(ctx, func() { time.AfterFunc(closingTime, w.cancel) })
		defer stop()
		for a := range w.jobs {
			w.run(a)
			w.idle.Done()
		}
	})
	return w
}

// write begins to write a; the one before must be done.
func (w *writer) write(a *aggregate) {
	w.idle.Add(1)
	w.jobs <- a
}

// busy reports whether a batch is under way, or was given up.
func (w *writer) busy() bool {
	w.fold.mu.RLock()
	defer w.fold.mu.RUnlock()
	return w.fold.frozen != nil
}

// stop ends the writer after the batch under way.
func (w *writer) stop() error {
	close(w.jobs)
	w.ended.Wait()
	w.cancel()
	select {
	case err := <-w.failed:
		return err
	default:
		return nil
	}
}

// run writes one batch, again and again until it is written or time is up. The
// counts stay in memory and in the log until then.
func (w *writer) run(a *aggregate) {
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		done := w.fold.cfg.Yielder.Boost()
		err := w.try(a)
		done()
		if err == nil {
			break
		}
		w.fold.mu.Lock()
		w.fold.stats.BatchErrors++
		if w.fold.unstored.IsZero() {
			w.fold.unstored = time.Now().UTC()
		}
		w.fold.mu.Unlock()
		w.fold.writing.Log(w.ctx, time.Now(), w.fold.cfg.Logger, slog.LevelError, "writing roll-ups failed, retrying", err)
		if errors.Is(err, rollup.ErrGeneration) {
			w.failed <- err
			return
		}
		if !background.Sleep(w.ctx, wait) {
			return
		}
	}
	w.fold.cfg.Log.Commit(a.state.Position)
	w.fold.mu.Lock()
	w.fold.frozen = nil
	w.fold.unstored = time.Time{}
	w.fold.stored = rollup.Freshness{Updated: time.Now().UTC(), Complete: a.complete}
	w.fold.stats.Batches++
	w.fold.stats.Written = a.state.Position
	w.fold.mu.Unlock()
	select {
	case w.done <- struct{}{}:
	default:
	}
}

// try makes the log durable up to the batch's position, then applies it: a
// position that the log lost in a power cut would let other clicks be skipped.
func (w *writer) try(a *aggregate) error {
	if w.fold.cfg.Log.Synced().Compare(a.state.Position) < 0 {
		if err := w.fold.cfg.Log.Sync(); err != nil {
			return err
		}
	}
	if err := w.fold.cfg.Store.Apply(w.ctx, rollup.Batch{State: a.state, Complete: a.complete, Links: func(yield func([]rollup.LinkDelta) bool) { a.deltas(w.fold.cfg.Yielder.Yield, yield) }}); err != nil {
		return fmt.Errorf("apply batch %d: %w", a.state.Generation, err)
	}
	return nil
}
