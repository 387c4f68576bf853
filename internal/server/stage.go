package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"curt/internal/compose"
)

// stage is a set of loops that end together. Stages end one after the other, so
// that what a loop leaves behind is taken up by the next stage: the handler's last
// clicks by Capture, Capture's last block by Fold.
type stage struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu  sync.Mutex
	err error // guarded by mu
}

// begin starts the loops. A loop that ends by itself, with or without an error, is
// a failure: it is sent to failed, and the server stops.
func begin(ctx context.Context, failed chan<- error, loops ...compose.Loop) *stage {
	ctx, cancel := context.WithCancel(ctx)
	s := &stage{cancel: cancel}
	for _, l := range loops {
		s.done.Go(func() {
			err := l.Run(ctx)
			switch {
			case ctx.Err() == nil:
				failed <- fmt.Errorf("%s ended: %w", l.Name, errors.Join(err, errEnded))
			case err != nil && !errors.Is(err, context.Canceled):
				s.mu.Lock()
				s.err = errors.Join(s.err, fmt.Errorf("%s: %w", l.Name, err))
				s.mu.Unlock()
			}
		})
	}
	return s
}

// stages are those of a server. The last ends first.
type stages []*stage

// end ends one after the other, so that the log is counted or sent whole, and returns what failed.
func (s stages) end() error {
	var errs []error
	for _, one := range slices.Backward(s) {
		errs = append(errs, one.end())
	}
	return errors.Join(errs...)
}

// errEnded: a loop that lives as long as the server returned before it.
var errEnded = errors.New("stopped unexpectedly")

// end asks the loops to finish, waits for them and returns what went wrong.
func (s *stage) end() error {
	s.cancel()
	s.done.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
