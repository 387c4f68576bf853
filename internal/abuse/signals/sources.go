// Package signals has the signals of package abuse that need no list of destinations: each
// file is one signal. sources.go reads the operator's files that some of them know more by.
package signals

import (
	"context"
	"log/slog"

	"curt/internal/abuse"
	"curt/internal/abuse/listfile"
	"curt/internal/background"
)

// Sourced is a signal that may know more by a file of the operator's.
type Sourced interface {
	abuse.Signal

	// Source returns the file, with no path where there is none.
	Source() *listfile.File
}

// OpenFiles reads the operator's files of those among signals that have one: of brands
// and of shorteners. It returns nil when none has. A file that cannot be used any more is
// logged. Log and yielder are those of listfile.NewSet.
func OpenFiles(ctx context.Context, log *slog.Logger, yielder background.Yielder, signals ...abuse.Signal) *listfile.Set {
	var files []*listfile.File
	for _, s := range signals {
		if from, ok := s.(Sourced); ok {
			if f := from.Source(); f.Path != "" {
				files = append(files, f)
			}
		}
	}
	if len(files) == 0 {
		return nil
	}
	set := listfile.NewSet(log, yielder, files...)
	set.Refresh(ctx)
	return set
}
