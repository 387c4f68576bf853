package clicklog

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"curt/internal/repeatlog"
)

// Trim unlinks what retention and the bound do not allow, oldest first.
func (l *Log) Trim(ctx context.Context, now time.Time) {
	l.appending.Lock()
	if c := l.current; c != nil && c.size > 0 && c.tooOld(now) {
		l.retire()
	}
	l.appending.Unlock()
	l.trimmer.trim(ctx, now)
}

// trimmer removes the segments of a log that have to go.
type trimmer struct {
	log   *Log
	stuck repeatlog.Condition // removals that fail
}

func (t *trimmer) trim(ctx context.Context, now time.Time) {
	l := t.log
	for {
		victim, unfolded, ok := t.victim(now)
		if !ok {
			t.stuck.LogRecovery(ctx, now, l.cfg.Logger, "removing click log segments recovered")
			return
		}
		path := filepath.Join(l.cfg.Dir, SegmentName(victim.Number))
		var lost uint64
		if unfolded {
			lost = t.unfoldedIn(victim)
			l.cfg.Logger.ErrorContext(ctx, "click log is full, losing clicks", slog.String("segment", path), slog.Uint64("clicks", lost))
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.stuck.Log(ctx, now, l.cfg.Logger, slog.LevelError, "removing a click log segment failed, retrying", err)
			return // the next tick tries again
		}
		_ = os.Remove(filepath.Join(l.cfg.Dir, IndexName(victim.Number))) // package history removes what stays
		l.mu.Lock()
		l.segments = slices.DeleteFunc(l.segments, func(s Segment) bool { return s.Number == victim.Number })
		l.stats.Bytes -= victim.Size
		l.stats.Segments--
		l.stats.RemovedSegments++
		l.stats.LostClicks += lost
		l.mu.Unlock()
	}
}

// victim returns the segment that has to go next, and whether its clicks were not
// all counted. The segment that is written to never goes.
func (t *trimmer) victim(now time.Time) (s Segment, unfolded, ok bool) {
	l := t.log
	l.mu.Lock()
	defer l.mu.Unlock()
	idle := l.segments
	for _, d := range l.dirty { // written to, or not yet synced
		idle = slices.DeleteFunc(slices.Clone(idle), func(s Segment) bool { return s.Number == d.number })
	}
	if len(idle) == 0 {
		return Segment{}, false, false
	}
	s = idle[0]
	unfolded = l.folded.Compare(Position{s.Number, s.Size}) < 0
	full := l.stats.Bytes > l.cfg.MaxBytes
	old := now.Sub(s.last) > l.cfg.Retention
	return s, unfolded, full || old && !unfolded
}

// unfoldedIn counts the clicks of a segment behind Fold's position. They may have
// reached statistics that a crash would still forget; the count says at most.
func (t *trimmer) unfoldedIn(victim Segment) (n uint64) {
	l := t.log
	l.mu.Lock()
	folded := l.folded
	l.mu.Unlock()
	_ = scanSegment(l.cfg.Dir, victim, folded, func(b *Block) { n += uint64(b.Count) }) // a disk that fails gives no better count
	return n
}
