package shorten

import (
	"context"
	"fmt"
	"sync"
	"time"

	"curt/internal/idempotency"
)

// busyWait is how long a request waits for others with its idempotency key.
const busyWait = 5 * time.Second

// attempts lets one request at a time use an idempotency key; the others wait, and then find
// what it has filed. Those of other processes are kept apart by the store of keys alone.
type attempts struct {
	mu    sync.Mutex
	under map[idempotency.Name]*attempt // guarded by mu
}

// attempt is a key that is in use.
type attempt struct {
	held  chan struct{} // capacity 1: full while a request has the key
	users int           // guarded by attempts.mu: who has it or waits for it
}

func newAttempts() *attempts { return &attempts{under: map[idempotency.Name]*attempt{}} }

// wait returns when it is the caller's turn, which it must give back with done.
func (a *attempts) wait(ctx context.Context, name idempotency.Name) (done func(), err error) {
	mine := a.enter(name)
	patience := time.NewTimer(busyWait)
	defer patience.Stop()
	select {
	case mine.held <- struct{}{}:
		return func() { <-mine.held; a.leave(name, mine) }, nil
	case <-patience.C:
		err = ErrKeyBusy
	case <-ctx.Done():
		err = fmt.Errorf("wait for an idempotency key: %w", context.Cause(ctx))
	}
	a.leave(name, mine)
	return nil, err
}

func (a *attempts) enter(name idempotency.Name) *attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	mine := a.under[name]
	if mine == nil {
		mine = &attempt{held: make(chan struct{}, 1)}
		a.under[name] = mine
	}
	mine.users++
	return mine
}

func (a *attempts) leave(name idempotency.Name, mine *attempt) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(a.under, name)
	}
}
