package clicks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

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
		f.standAside()
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
		done := w.fold.cfg.Work()
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
		if again, due := w.fold.writing.Met(time.Now()); due {
			w.fold.cfg.Logger.ErrorContext(w.ctx, "write roll-ups", slog.Any("err", err), again)
		}
		if errors.Is(err, ErrGeneration) {
			w.failed <- err
			return
		}
		if !sleep(w.ctx, wait) {
			return
		}
	}
	w.fold.cfg.Log.SetFolded(a.state.Position)
	w.fold.mu.Lock()
	w.fold.frozen = nil
	w.fold.unstored = time.Time{}
	w.fold.stored = Freshness{Updated: time.Now().UTC(), Complete: a.complete}
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
	if err := w.fold.cfg.Store.Apply(w.ctx, Batch{State: a.state, Complete: a.complete, Links: func(yield func([]LinkDelta) bool) { a.deltas(w.fold.cfg.Rest, yield) }}); err != nil {
		return fmt.Errorf("apply batch %d: %w", a.state.Generation, err)
	}
	return nil
}

// sleep waits and reports whether ctx still goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
