package clicks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const segmentSuffix = ".clicks"

func segmentName(number uint64) string { return fmt.Sprintf("%016d%s", number, segmentSuffix) }

// begun is when the first clicks of the segment may have been, in Unix milliseconds: its
// number is when it was made, a moment after they were captured.
func (s segment) begun() int64 { return int64(s.number) - time.Minute.Milliseconds() }

// listSegments returns the segments of a folder by number. Other files are not ours.
func listSegments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []segment
	for _, e := range entries {
		number, ok := segmentNumber(e.Name())
		if !ok {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // trimmed meanwhile
		}
		if err != nil {
			return nil, err
		}
		found = append(found, segment{number: number, size: info.Size(), last: info.ModTime()})
	}
	slices.SortFunc(found, func(a, b segment) int { return Position{Segment: a.number}.Compare(Position{Segment: b.number}) })
	return found, nil
}

// recover reads the folder and cuts a torn end off the last segment: a write that a death
// cut short. What is damaged otherwise stays for the reader to report.
func (l *Log) recover() error {
	found, err := listSegments(l.cfg.Dir)
	if err != nil {
		return err
	}
	if n := len(found); n > 0 {
		last, name := &found[n-1], filepath.Join(l.cfg.Dir, segmentName(found[n-1].number))
		was := last.size
		if last.size, err = l.cutTail(name, *last); err != nil {
			return err
		}
		if was > 0 && last.size == 0 { // else the next start would miss what it held
			if err := os.Remove(name); err != nil {
				return err
			}
			found = found[:n-1]
		}
		if n = len(found); n > 0 {
			last = &found[n-1]
		}
		l.end = Position{last.number, last.size}
		l.synced = l.end
	}
	l.segments = found
	for _, s := range found {
		l.stats.Bytes += s.size
	}
	l.stats.Segments = int64(len(found))
	return nil
}

// trim unlinks what retention and the bound do not allow, oldest first.
func (l *Log) trim(ctx context.Context, now time.Time) {
	l.appending.Lock()
	if c := l.current; c != nil && c.size > 0 && l.tooOld(c.number, now) {
		l.retire()
	}
	l.appending.Unlock()
	for {
		victim, unfolded, ok := l.victim(now)
		if !ok {
			if sum, due := l.stuck.Over(now); due {
				l.cfg.Logger.InfoContext(ctx, "click log segments are removed again", sum)
			}
			return
		}
		path := filepath.Join(l.cfg.Dir, segmentName(victim.number))
		var lost uint64
		if unfolded {
			lost = l.unfoldedIn(victim, path)
			l.cfg.Logger.ErrorContext(ctx, "click log is full, clicks are lost", slog.String("segment", path), slog.Uint64("clicks", lost))
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			if again, due := l.stuck.Met(now); due {
				l.cfg.Logger.ErrorContext(ctx, "remove click log segment", slog.Any("err", err), again)
			}
			return // the next tick tries again
		}
		_ = os.Remove(filepath.Join(l.cfg.Dir, indexName(victim.number))) // what stays, History removes
		l.mu.Lock()
		l.segments = slices.DeleteFunc(l.segments, func(s segment) bool { return s.number == victim.number })
		l.stats.Bytes -= victim.size
		l.stats.Segments--
		l.stats.RemovedSegments++
		l.stats.LostClicks += lost
		l.mu.Unlock()
	}
}

// victim returns the segment that has to go next, and whether its clicks were not
// all counted. The segment that is written to never goes.
func (l *Log) victim(now time.Time) (s segment, unfolded, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	idle := l.segments
	for _, d := range l.dirty { // written to, or not yet synced
		idle = slices.DeleteFunc(slices.Clone(idle), func(s segment) bool { return s.number == d.number })
	}
	if len(idle) == 0 {
		return segment{}, false, false
	}
	s = idle[0]
	unfolded = l.folded.Compare(Position{s.number, s.size}) < 0
	full := l.stats.Bytes > l.cfg.MaxBytes
	old := now.Sub(s.last) > l.cfg.Retention
	return s, unfolded, full || old && !unfolded
}

// unfoldedIn counts the clicks of a segment behind Fold's position. They may have
// reached statistics that a crash would still forget; the count says at most.
func (l *Log) unfoldedIn(victim segment, path string) (n uint64) {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // only read
	l.mu.Lock()
	s := segmentScanner{file: f, size: victim.size}
	if l.folded.Segment == victim.number {
		s.at = l.folded.Offset
	}
	l.mu.Unlock()
	for {
		b, err := s.next()
		if isDamage(err) {
			if follows, err := s.skip(); err == nil && follows {
				continue
			}
		}
		if err != nil {
			return n
		}
		n += uint64(b.Count)
	}
}

// IsSegment reports whether a file of the click log's folder is a segment, by its name.
func IsSegment(name string) bool {
	_, ok := segmentNumber(name)
	return ok
}

func segmentNumber(name string) (number uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	number, err := strconv.ParseUint(digits, 10, 63)
	return number, ok && err == nil && segmentName(number) == name
}
