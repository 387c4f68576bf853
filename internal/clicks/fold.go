package clicks

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"curt/internal/link"
	"curt/internal/repeatlog"
)

// FoldConfig says what Fold reads and where it writes.
type FoldConfig struct {
	Log    *Log
	Store  RollupStore
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
	// Aside, if set, is called first in each of the two goroutines that compute for
	// long, Run's and the writer's, so that they can be made to stand back.
	Aside func()
	// Work, if set, is called when one of them begins to compute, and done when it
	// waits again, so that the process can be lent processors meanwhile.
	Work func() (done func())
	// Rest, if set, is called by either of them between parts of its work, of some 50 µs, and may
	// wait.
	Rest func()
}

// Fold counts what the log holds. It keeps the newest counts in memory, writes
// them in batches together with its position, and hands the memory's part to
// whoever reads statistics.
type Fold struct {
	cfg    FoldConfig
	agents *agents // owned by Run
	groups groups  // owned by Run
	held   *Block  // owned by Run; read and not yet counted, because its groups are not known

	loading, reading, learning, writing repeatlog.Condition

	mu        sync.RWMutex
	active    *aggregate // guarded by mu, filled by Run; nil until the state is loaded
	frozen    *aggregate // guarded by mu; being written, unchanged
	freshness Freshness  // guarded by mu
	stored    Freshness  // guarded by mu; of what is written
	unstored  time.Time  // guarded by mu; since when writing fails; zero = it does not
	stats     FoldStats  // guarded by mu
}

// Freshness says how new the counts are.
type Freshness struct {
	Updated  time.Time // when Fold last found out what there is to count
	Complete time.Time // every kept click before it is counted; zero = not known yet
}

// FoldStats are counters since the start.
type FoldStats struct {
	Events      uint64
	Batches     uint64
	BatchErrors uint64
	Damages     uint64   // places of the log that could not be read
	Read        Position // everything before is counted, in memory at least
	Written     Position // everything before is counted for good

	// Unstored is since when counts cannot be written, zero while they can: then they are in
	// memory and in the log alone.
	Unstored time.Time
}

// NewFold returns a Fold that begins with Run.
func NewFold(c FoldConfig) *Fold {
	if c.Every <= 0 {
		c.Every = 10 * time.Second
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 12 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Work == nil {
		c.Work = func() func() { return func() {} }
	}
	if c.Rest == nil {
		c.Rest = func() {}
	}
	return &Fold{cfg: c, agents: newAgents(), groups: newGroups(c.Groups)}
}

// Changed has the groups of links asked for again before their next clicks are counted: a link may
// belong to another by now. No links = nobody knows which changed. It never waits.
func (f *Fold) Changed(keys ...link.Key) { f.groups.heard.Add(keys...) }

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
	f.cfg.Log.SetFolded(state.Position)
	f.cfg.Log.miss(ctx, state.Position)
	f.mu.Lock()
	f.active = newAggregate(State{state.Generation + 1, state.Position})
	f.stored.Updated = time.Now().UTC()
	f.stats.Read, f.stats.Written = state.Position, state.Position
	f.mu.Unlock()
	if f.cfg.Paused {
		<-ctx.Done()
		return nil
	}
	f.standAside()
	reader := f.cfg.Log.Read(state.Position)
	defer reader.Close()
	w := startWriter(ctx, f)
	err := f.loop(ctx, reader, w)
	return errors.Join(err, w.stop())
}

func (f *Fold) standAside() {
	if f.cfg.Aside != nil {
		f.cfg.Aside()
	}
}

// load asks the store until it answers; ok is false when ctx ended first.
func (f *Fold) load(ctx context.Context) (state State, ok bool) {
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		state, err := f.cfg.Store.Load(ctx)
		if err == nil {
			return state, true
		}
		if ctx.Err() != nil {
			return State{}, false
		}
		if again, due := f.loading.Met(time.Now()); due {
			f.cfg.Logger.ErrorContext(ctx, "load fold position", slog.Any("err", err), again)
		}
		sleep(ctx, wait)
	}
}

// loop reads and writes until ctx ends.
func (f *Fold) loop(ctx context.Context, r *Reader, w *writer) error {
	tick := time.NewTicker(foldTick)
	defer tick.Stop()
	due := time.Now().Add(f.cfg.Every)
	if f.cfg.Shared != nil {
		due = time.Now() // the others wait for a word of ours
	}
	for {
		done := f.cfg.Work()
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
		case <-f.cfg.Log.grown:
		case <-tick.C:
		}
	}
}

// recovered logs what is over.
func (f *Fold) recovered(ctx context.Context, now time.Time) {
	for what, c := range map[string]*repeatlog.Condition{
		"load fold position": &f.loading, "read click log": &f.reading,
		"clicks wait to be counted": &f.learning, "write roll-ups": &f.writing,
	} {
		if sum, due := c.Over(now); due {
			f.cfg.Logger.InfoContext(ctx, "clicks are counted again", slog.String("over", what), sum)
		}
	}
}

// finish counts the rest of the log and hands it to the writer, whose stop waits.
func (f *Fold) finish(r *Reader, w *writer) error {
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
func (f *Fold) read(ctx context.Context, r *Reader) (caughtUp bool) {
	for !f.full() {
		mark := f.cfg.Log.Mark() // before the end is looked for
		b, err := f.next(r)
		var damage *DamageError
		switch {
		case errors.Is(err, io.EOF):
			f.seen(r.Position(), mark)
			return true
		case errors.As(err, &damage):
			f.skip(ctx, r, damage)
			continue
		case err != nil:
			if again, due := f.reading.Met(time.Now()); due {
				f.cfg.Logger.ErrorContext(ctx, "read click log", slog.Any("err", err), again)
			}
			return true // the tick tries again
		}
		if err := f.groups.learn(ctx, &b); err != nil {
			if again, due := f.learning.Met(time.Now()); due {
				f.cfg.Logger.ErrorContext(ctx, "clicks wait to be counted", slog.Any("err", err), again)
			}
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
func (f *Fold) next(r *Reader) (Block, error) {
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
func (f *Fold) foldBlock(ctx context.Context, b *Block) {
	n := 0
	f.mu.Lock()
	err := b.Events(func(e *Event) error {
		if n++; n%foldSlice == 0 {
			f.mu.Unlock()
			f.cfg.Rest()
			f.mu.Lock()
		}
		f.active.add(e, f.agents, f.groups.of(e))
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
		f.cfg.Log.damaged(b.At)
		f.cfg.Logger.ErrorContext(ctx, "click log block", slog.Any("err", err), slog.String("at", b.At.String()))
	}
}

// skip passes over a damage. The segment is ended if it is still written to: what comes
// next must be read.
func (f *Fold) skip(ctx context.Context, r *Reader, damage *DamageError) {
	at := r.Position()
	f.cfg.Log.endSegment(at.Segment)
	r.Skip()
	f.cfg.Log.damaged(at)
	f.mu.Lock()
	f.stats.Damages++
	f.active.state.Position = r.Position()
	f.stats.Read = r.Position()
	f.mu.Unlock()
	f.cfg.Logger.ErrorContext(ctx, "click log is damaged, clicks there are not counted",
		slog.Any("err", damage), slog.String("next", r.Position().String()))
}

// seen notes that Fold is at the log's end.
func (f *Fold) seen(at Position, mark Watermark) {
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
	f.active = newAggregate(State{f.frozen.state.Generation + 1, f.frozen.state.Position})
	return f.frozen
}

// Freshness returns how new the counts are. While they cannot be written it is that of what
// is: what is in memory alone ends with the process, and nobody can say when it is written.
func (f *Fold) Freshness() Freshness {
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
func (f *Fold) Stats() FoldStats {
	f.mu.RLock()
	defer f.mu.RUnlock()
	stats := f.stats
	stats.Unstored = f.unstored
	return stats
}
