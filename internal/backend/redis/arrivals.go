package redis

import (
	"fmt"
	"os"
	"sync"
)

// arrivals has the runtime look at the network. While goroutines wait to be run it does not
// look by itself but every ten milliseconds (findRunnable and sysmon in Go's proc.go), so
// that in a busy process an answer that came in time seems late; and who then asks the
// database makes the process busier. A goroutine that waits for a pipe is told together with
// those whose answers came before. It is safe for many goroutines.
type arrivals struct {
	mu   sync.Mutex // whose owner has written and waits
	pipe *os.File
	seen chan struct{} // one element for each byte; closed with the pipe
}

// newArrivals opens the pipe; close ends what waits for it.
func newArrivals() (*arrivals, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("create a pipe: %w", err)
	}
	a := &arrivals{pipe: w, seen: make(chan struct{})}
	go func() {
		defer close(a.seen)
		defer func() { _ = r.Close() }()
		one := make([]byte, 1)
		for {
			if _, err := r.Read(one); err != nil {
				return
			}
			a.seen <- struct{}{}
		}
	}()
	return a, nil
}

// handOut returns once everybody whom an answer had reached when it was called was told so,
// and had a turn. That takes microseconds, and in a busy process some milliseconds.
func (a *arrivals) handOut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for range 2 { // the runtime looks again when those whom it told the first time have run
		if _, err := a.pipe.Write([]byte{0}); err != nil {
			return
		}
		<-a.seen
	}
}

func (a *arrivals) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.pipe.Close()
	<-a.seen
}
