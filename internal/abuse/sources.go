package abuse

import (
	"context"
	"log/slog"
)

// SourcesConfig says how files of signals are read.
type SourcesConfig struct {
	Log  *slog.Logger         // nil = none
	Work func() (done func()) // as Config.Work
}

// Sources are the operator's files that signals were made with: of brands and of
// shorteners. They are read anew when they change, as Blocklists are, and under the same
// promises: what cannot be used, for one line that is wrong, leaves the version in use.
type Sources struct{ *files }

// sourced is a signal that may have a file.
type sourced interface {
	source() *list // with no path when it has none
}

// OpenSources reads the files of those among signals that have one; nil when none has. A
// file that cannot be used any more is logged.
func OpenSources(ctx context.Context, cfg SourcesConfig, signals ...Signal) *Sources {
	f := newFiles(cfg.Log, cfg.Work)
	for _, s := range signals {
		if from, ok := s.(sourced); ok {
			if l := from.source(); l.path != "" {
				f.lists = append(f.lists, l)
			}
		}
	}
	if len(f.lists) == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lists {
		f.report(ctx, l, f.load(ctx, l))
	}
	return &Sources{f}
}

// Stats returns the counters of the files.
func (s *Sources) Stats() Stats { return s.stats(informs) }
