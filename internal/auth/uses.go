package auth

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"curt/internal/background"
	"curt/internal/link"
)

const (
	// usedEvery is how seldom the use of one key is written.
	usedEvery = time.Minute
	// flushEvery is how long a use waits to be written together with others.
	flushEvery = 5 * time.Second
)

// uses collects when keys were used, for a loop that writes it: no request waits.
type uses struct {
	mu      sync.Mutex
	pending map[link.ID]time.Time // guarded by mu; at most one for each key that there is
}

// note remembers the use of a key, unless the store has one of the last minute.
func (u *uses) note(k *Key, now time.Time) {
	if now.Sub(k.Used) < usedEvery && !now.Before(k.Used) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.pending == nil {
		u.pending = map[link.ID]time.Time{}
	}
	if _, waits := u.pending[k.ID]; !waits {
		u.pending[k.ID] = now
	}
}

// flush writes what is pending. What could not be written waits for the next time.
func (u *uses) flush(ctx context.Context, s Store) error {
	u.mu.Lock()
	taken := u.pending
	u.pending = nil
	u.mu.Unlock()
	if len(taken) == 0 {
		return nil
	}
	err := s.Touch(ctx, taken)
	if err == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.Copy(taken, u.pending) // the newer ones win
	u.pending = taken
	return fmt.Errorf("store last use of keys: %w", err)
}

// Run writes when keys were used, every few seconds until ctx ends and once more
// then. A failure is logged: nobody is refused because of it.
func (k *Keys) Run(ctx context.Context) error {
	for range background.Ticks(ctx, flushEvery) {
		k.flush(ctx)
	}
	k.flush(context.WithoutCancel(ctx))
	return nil
}

func (k *Keys) flush(ctx context.Context) {
	if err := k.uses.flush(ctx, k.finder.store); err == nil {
		k.unstored.LogRecovery(ctx, time.Now(), k.log, "storing last use of keys recovered")
	} else if ctx.Err() == nil {
		k.unstored.Log(ctx, time.Now(), k.log, slog.LevelWarn, "storing last use of keys failed, retrying", err)
	}
}
