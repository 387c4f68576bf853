package clicks

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// What is gone from a log leaves no block that could be damaged. Two things show it: a segment
// that is empty, which has its first block from the moment it is made, and an index beside
// which there is no segment, because trim takes both. A segment that is gone before it had an
// index leaves no trace.
var (
	errEmptied = errors.New("the segment is empty: what it held is lost, unless a death cut its first write short")
	errDeleted = errors.New("the segment is gone, and only its index is there: what it held is lost")
)

// missing returns what is gone of a log behind a position.
func missing(dir string, segments []segment, counted Position) (gone []*DamageError) {
	there := map[uint64]bool{}
	for _, s := range segments {
		there[s.number] = true
		name := filepath.Join(dir, segmentName(s.number))
		if s.number > counted.Segment && s.size == 0 {
			gone = append(gone, &DamageError{File: name, Err: errEmptied})
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return gone // whoever reads the segments says so
	}
	for _, e := range entries {
		stem, is := strings.CutSuffix(e.Name(), indexSuffix)
		number, ok := segmentNumber(stem + segmentSuffix)
		if is && ok && number > counted.Segment && !there[number] {
			gone = append(gone, &DamageError{File: filepath.Join(dir, segmentName(number)), Err: errDeleted})
		}
	}
	return gone
}

// miss tells of what is gone behind the position that Fold goes on from.
func (l *Log) miss(ctx context.Context, counted Position) {
	l.mu.Lock()
	segments := append([]segment(nil), l.segments...)
	l.mu.Unlock()
	for _, d := range missing(l.cfg.Dir, segments, counted) {
		number, _ := segmentNumber(filepath.Base(d.File))
		if l.damaged(Position{Segment: number}) {
			l.cfg.Logger.ErrorContext(ctx, "click log is damaged, clicks there are not counted", slog.Any("err", d))
		}
	}
}
