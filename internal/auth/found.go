package auth

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// remembered is how long another process's revocation may go unnoticed here, and
	// how often a busy key is read. Revocations of this process are noticed at once.
	remembered = time.Second

	// maxRemembered bounds the secrets of each half of the cache: 4,096 of 300 bytes.
	// Unknown secrets have a half of their own, so that those who guess do not crowd
	// out those who know.
	maxRemembered = 4096
)

// finder remembers what the store said about a secret, so that a busy key costs one
// read a second. It is safe for many goroutines.
type finder struct {
	store Store

	mu      sync.RWMutex
	epoch   uint64 // guarded by mu, as all below: how often everything was forgotten
	known   map[Sum]memory
	unknown map[Sum]memory
}

// memory is an answer of the store. Found is zero for ErrNoKey.
type memory struct {
	found Found
	until time.Time
}

func newFinder(s Store) *finder {
	return &finder{store: s, known: map[Sum]memory{}, unknown: map[Sum]memory{}}
}

// find is Store.Find, up to a second late. fresh says that the store was asked.
func (f *finder) find(ctx context.Context, sum Sum, now time.Time) (found Found, fresh bool, err error) {
	f.mu.RLock()
	m, ok := f.known[sum]
	if !ok {
		m, ok = f.unknown[sum]
	}
	epoch := f.epoch
	f.mu.RUnlock()
	if ok && now.Before(m.until) && m.until.Sub(now) <= remembered { // a clock that went back remembers nothing
		if m.found.Key.ID.IsZero() {
			return Found{}, false, ErrNoKey
		}
		return m.found, false, nil
	}
	found, err = f.store.Find(ctx, sum)
	if err != nil && !errors.Is(err, ErrNoKey) {
		return Found{}, true, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	// What was read before something changed may not outlive the change.
	if epoch == f.epoch {
		put(f.known, sum, err == nil, memory{found, now.Add(remembered)})
		put(f.unknown, sum, err != nil, memory{until: now.Add(remembered)})
	}
	return found, true, err
}

// put remembers, or forgets what is not so any more. When there is no room, something
// goes: iteration over a map starts anywhere.
func put(half map[Sum]memory, sum Sum, holds bool, m memory) {
	if !holds {
		delete(half, sum)
		return
	}
	if _, there := half[sum]; !there && len(half) >= maxRemembered {
		for victim := range half {
			delete(half, victim)
			break
		}
	}
	half[sum] = m
}

// forget makes every key be read again: keys change so seldom that which one did is
// not worth knowing.
func (f *finder) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.epoch++
	clear(f.known)
	clear(f.unknown)
}
