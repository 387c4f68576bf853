package shorten

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"curt/internal/idempotency"
)

// busyWait is how long a request waits for another one with its idempotency key.
const busyWait = 5 * time.Second

// attempts lets one request at a time use an idempotency key; the others wait.
type attempts struct {
	mu    sync.Mutex
	under map[idempotency.Name]*attempt // guarded by mu
}

// attempt is one request under way. Its result is set before done is closed.
type attempt struct {
	done  chan struct{}
	print [32]byte
	made  Made
	err   error
}

func newAttempts() *attempts { return &attempts{under: map[idempotency.Name]*attempt{}} }

// errGaveUp ends an attempt whose goroutine panicked.
var errGaveUp = errors.New("the attempt broke off")

// join runs lead unless a request of the same name is under way; then it waits for
// that one's link. Where that one failed, one of those who waited tries for itself.
func (a *attempts) join(ctx context.Context, name idempotency.Name, print [32]byte, lead func() (Made, error)) (Made, error) {
	patience := time.NewTimer(busyWait)
	defer patience.Stop()
	for {
		mine, other := a.enter(name, print)
		if mine != nil {
			defer a.leave(name, mine)
			mine.made, mine.err = lead()
			return mine.made, mine.err
		}
		select {
		case <-other.done:
		case <-patience.C:
			return Made{}, ErrKeyBusy
		case <-ctx.Done():
			return Made{}, fmt.Errorf("wait for an idempotency key: %w", context.Cause(ctx))
		}
		switch {
		case other.err == nil && other.print == print:
			return other.made, nil
		case other.err == nil:
			return Made{}, ErrKeyReused
		}
	}
}

// enter returns a new attempt, or the one under way.
func (a *attempts) enter(name idempotency.Name, print [32]byte) (mine, other *attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if other = a.under[name]; other != nil {
		return nil, other
	}
	mine = &attempt{done: make(chan struct{}), print: print, err: errGaveUp}
	a.under[name] = mine
	return mine, nil
}

func (a *attempts) leave(name idempotency.Name, mine *attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.under, name)
	close(mine.done)
}
