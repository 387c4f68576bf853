package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"curt/internal/background"
	"curt/internal/cache/issued"
	"curt/internal/cache/keyhash"
	"curt/internal/feed"
	"curt/internal/link"
	"curt/internal/repeatlog"
)

const (
	// changesPerPage bounds one question to the change log.
	changesPerPage = 1000
	// relayed is how many changes that the log told a process passes on; of more than
	// that it passes on how far they go.
	relayed = 100
	// heardPolls is how many intervals go by between two readings while the bus is heard:
	// the write of a process that died before its note is found by the log alone.
	heardPolls = 4
	// pollPause is the least time between two readings, so that many changes of one
	// moment are read together.
	pollPause = 20 * time.Millisecond
)

// follower reads the change log, the truth about what other processes changed.
//
// Invariant: all changes up to the position of recent were applied. Where that cannot be
// said, because the position was trimmed away or is past the end, L1 is emptied first.
type follower struct {
	clock   clock
	hash    keyhash.Hasher
	changes *changes
	recent  *recent
	polls   *polls
	notes   *notes
	issued  *issued.Codes // nil = none
	log     *slog.Logger
}

// run follows the log until ctx ends and its goroutines have ended.
func (f *follower) run(ctx context.Context, log ChangeLog, interval time.Duration) {
	var owned sync.WaitGroup
	defer owned.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	owned.Go(func() { f.notes.run(ctx) })
	if f.notes.bus != nil {
		owned.Go(func() { f.notes.listen(ctx) })
	}
	if f.recent.keeps {
		owned.Go(func() { f.recall(ctx, log) })
	}
	f.follow(ctx, log, interval)
}

func (f *follower) follow(ctx context.Context, log ChangeLog, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	reader := f.reader(log)
	wanted, skipped := true, 0
	var unread repeatlog.Condition
	for {
		if wanted {
			skipped = 0
			began := f.clock.now()
			err := poll(ctx, reader)
			if err == nil {
				f.polls.ended(began)
				unread.LogRecovery(ctx, time.Now(), f.log, "reading the change log recovered")
			} else if ctx.Err() == nil {
				unread.Log(ctx, time.Now(), f.log, slog.LevelWarn, "reading the change log failed, retrying", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.recent.markCalm(f.clock.now())
			head, _ := f.recent.head()
			f.notes.publish(ctx, Note{Head: head})
			skipped++
			wanted = skipped >= heardPolls || f.polls.quiet() || f.notes.bus == nil
		case <-f.polls.wanted:
			wanted = true
			if !background.Sleep(ctx, pollPause) {
				return
			}
		}
	}
}

// poll reads the log from where it was heard to its end. What was read before a failure
// counts.
func poll(ctx context.Context, reader *feed.Follower[link.Position, link.Change]) error {
	ctx, cancel := context.WithTimeout(ctx, feedLimit) // a store that hangs is asked anew
	defer cancel()
	return reader.CatchUp(ctx)
}

// reader is this process as a follower of the change log.
func (f *follower) reader(log ChangeLog) *feed.Follower[link.Position, link.Change] {
	return &feed.Follower[link.Position, link.Change]{
		Name: "cache", Page: changesPerPage,
		Log: feed.Log[link.Position, link.Change]{Read: log.Changes, Head: log.Head},
		Position: func(context.Context) (link.Position, bool, error) {
			at, begun := f.recent.head() // a note of the bus may have moved it
			return at.Position(), begun, nil
		},
		Apply: func(ctx context.Context, changes []link.Change, _ link.Position) error {
			for _, ch := range changes {
				f.recent.read(f.hash.Of(ch.Key.Domain, ch.Key.Code), ch)
			}
			f.changes.apply(changes)
			head, _ := f.recent.head()
			n := Note{Head: head}
			if len(changes) <= relayed {
				n.Changes = changes
			}
			f.notes.publish(ctx, n)
			return nil
		},
		Rebuild: func(ctx context.Context) error { return f.begin(ctx, log) },
	}
}

// begin takes the head first and forgets everything after: what changed before the
// head cannot be in L1 then, and what changes later is heard. Until it is done, nothing is certain.
func (f *follower) begin(ctx context.Context, log ChangeLog) error {
	f.recent.lost()
	var heads link.Heads
	head, err := log.Head(ctx)
	if err == nil {
		heads, err = head.Heads()
	}
	if err != nil {
		return fmt.Errorf("read the head of the change log: %w", err)
	}
	f.recent.begin(heads)
	f.changes.missed()
	if f.issued != nil {
		f.issued.Refill()
	}
	return nil
}

// recall reads the log backwards from where Follow began, so that what others put into L2
// before this process started can be vouched for. It tries again until ctx ends, also
// after a position was lost.
func (f *follower) recall(ctx context.Context, log ChangeLog) {
	for range background.Every(ctx, time.Second) {
		for f.recallPage(ctx, log) {
		}
	}
}

// recallPage reads one page, and reports whether there may be more.
func (f *follower) recallPage(ctx context.Context, log ChangeLog) bool {
	partition, low, wanted := f.recent.unknown()
	if !wanted {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, feedLimit)
	defer cancel()
	at, _ := f.recent.head()
	from := low - min(low, changesPerPage)
	changes, err := between(ctx, log, at, partition, from, low)
	if errors.Is(err, link.ErrConflict) { // trimmed: that is all there is
		f.recent.complete(partition)
		return true
	}
	if err != nil {
		return false
	}
	hashes := make([]uint64, len(changes))
	for i, ch := range changes {
		hashes[i] = f.hash.Of(ch.Key.Domain, ch.Key.Code)
	}
	f.recent.before(partition, from, hashes, changes)
	return true
}

// between reads what a partition has behind from up to a sequence; at is how far all were read. What
// others have behind it may come between.
func between(ctx context.Context, log ChangeLog, at link.Heads, partition uint16, from, to link.Sequence) (all []link.Change, err error) {
	after := at.Set(partition, from).Position()
	for {
		page, next, err := log.Changes(ctx, after, int(to-from))
		if err != nil || len(page) == 0 {
			return all, err
		}
		for _, ch := range page {
			if ch.Partition == partition && ch.Sequence <= to {
				all = append(all, ch)
			}
		}
		if n := len(all); n > 0 && all[n-1].Sequence == to {
			return all, nil
		}
		after = next
	}
}
