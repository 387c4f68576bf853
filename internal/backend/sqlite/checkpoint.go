package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"time"

	"curt/internal/link"
	"curt/internal/repeatlog"
)

const (
	pageSize = 4096

	// checkpointPause spaces looks at the WAL: at 100 MB/s of WAL it grows by 10 MB
	// meanwhile.
	checkpointPause = 100 * time.Millisecond

	// heldPages is how much a checkpoint may leave to the last step, which holds the
	// writer: 4 MiB are copied and synced in about 10 ms.
	heldPages = 1024

	// checkpointRounds bounds the rounds beside the writer. Each leaves what was
	// written during it, which shrinks unless the disk is slower than the writer.
	checkpointRounds = 5
)

// wal is the state of the write-ahead log in pages.
type wal struct {
	pages int64 // in the log
	moved int64 // of them already in the file
	busy  bool  // somebody kept the checkpoint from its end
}

func walState(t *tx, pragma string) (w wal, err error) {
	_, err = t.one(pragma, func(row []driver.Value) error {
		s := scanner{row: row}
		w.busy, w.pages, w.moved = s.bool(), s.int(), s.int()
		return s.damage()
	})
	return w, err
}

// Run brings the WAL into the file whenever it has grown to CheckpointMiB, until ctx
// ends; then it returns nil. It sleeps while nobody writes. A checkpoint that fails
// is logged and tried again after the next write, because look-ups go on whatever
// happens to it; where it breaks the store for writes, Healthy says so.
//
// The pages are copied beside the writer (PASSIVE). Under steady writes such a
// checkpoint never reaches the end of the log, which then grows for ever; so the
// last few pages are copied while the writer is held, and the next write starts the
// log from its beginning. A reader that stays in an old state, such as a backup,
// delays this; the log grows meanwhile.
func (s *Links) Run(ctx context.Context) error {
	var failing repeatlog.Condition
	return afterWrites(ctx, s.writer.committed, checkpointPause, func() error {
		if err := s.checkpointIfDue(ctx); err != nil && ctx.Err() == nil {
			if again, due := failing.Met(time.Now()); due {
				s.config.Log.ErrorContext(ctx, "checkpoint of links failed", slog.Any("err", err), again)
			}
		} else if sum, due := failing.Over(time.Now()); due {
			s.config.Log.InfoContext(ctx, "checkpoints of links succeed again", sum)
		}
		return nil
	})
}

// afterWrites calls f when something was written, and then not before the pause is over,
// until ctx ends, which is nil, or f fails.
func afterWrites(ctx context.Context, written <-chan struct{}, pause time.Duration, f func() error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-written:
		}
		if err := f(); err != nil {
			return err
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
	}
}

func (s *Links) checkpointIfDue(ctx context.Context) error {
	if s.scrub.Load() {
		return s.checkpoint(ctx, sqlTruncateWAL)
	}
	w, err := s.checkpointer(sqlWALSize)
	if err != nil || w.pages*pageSize < s.config.CheckpointMiB<<20 || s.writer.failure() != nil {
		return err
	}
	return s.checkpoint(ctx, sqlCheckpoint)
}

// checkpoint brings the whole WAL into the file; last is the pragma of the step that
// holds the writer.
func (s *Links) checkpoint(ctx context.Context, last string) error {
	for range checkpointRounds {
		w, err := s.checkpointer(sqlCheckpoint)
		if err != nil {
			return err
		}
		if w.pages-w.moved <= heldPages {
			break
		}
	}
	s.ahead.measure()
	var w wal
	err := s.writer.exclusive(ctx, func() (err error) {
		w, err = s.checkpointer(last)
		if err == nil && last == sqlTruncateWAL && !w.busy {
			s.scrub.Store(false)
		}
		return err
	})
	if err != nil || w.busy || w.moved < w.pages {
		return err
	}
	return s.renewGeneration(ctx)
}

// checkpointer runs a pragma on the connection for checkpoints. A failure to write
// or sync stops all writes: the file may miss pages, which only the WAL still has.
func (s *Links) checkpointer(pragma string) (w wal, err error) {
	s.checking.Lock()
	defer s.checking.Unlock()
	select {
	case <-s.closed:
		return w, fmt.Errorf("closed: %w", link.ErrUnavailable)
	default:
	}
	err = s.check.do(func(t *tx) error {
		w, err = walState(t, pragma)
		return err
	})
	if code := resultCode(err); code&0xff == codeIOErr || damaged(err) {
		s.writer.stop(err)
	}
	if code := resultCode(err) & 0xff; code == codeFull || code == codeBusy {
		return wal{busy: true}, nil // it is tried again after the next write
	}
	return w, undone(err)
}
