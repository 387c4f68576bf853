package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// loop is a Run method with the name that its failure is reported under.
type loop struct {
	name string
	run  func(context.Context) error
}

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
func begin(ctx context.Context, failed chan<- error, loops ...loop) *stage {
	ctx, cancel := context.WithCancel(ctx)
	s := &stage{cancel: cancel}
	for _, l := range loops {
		s.done.Go(func() {
			err := l.run(ctx)
			switch {
			case ctx.Err() == nil:
				failed <- fmt.Errorf("%s ended: %w", l.name, errors.Join(err, errEnded))
			case err != nil && !errors.Is(err, context.Canceled):
				s.mu.Lock()
				s.err = errors.Join(s.err, fmt.Errorf("%s: %w", l.name, err))
				s.mu.Unlock()
			}
		})
	}
	return s
}

// stages are those of a server, in the order in which they end.
type stages struct {
	traffic *stage // visitors, who make clicks
	capture *stage // takes them out of the ring into the log
	fold    *stage // counts what is in the log, or sends it to Kafka
	support *stage // all three stand on it
}

// end ends one after the other, so that the log is counted or sent whole, and returns what
// went wrong.
func (s *stages) end() error {
	return errors.Join(s.traffic.end(), s.capture.end(), s.fold.end(), s.support.end())
}

// errEnded: a loop that lives as long as the server returned before it.
var errEnded = errors.New("stopped by itself")

// end asks the loops to finish, waits for them and returns what went wrong.
func (s *stage) end() error {
	s.cancel()
	s.done.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
