package cachetest

import (
	"context"
	"maps"
	"sync"
	"time"

	"curt/internal/cache"
	"curt/internal/link"
)

// Shared is a cache.Shared in this process: the model that other ones are compared with.
// It is safe for many goroutines.
type Shared struct {
	mu      sync.Mutex
	entries map[link.Key]cache.Entry
	gets    int
	down    error
}

// NewShared returns an empty one.
func NewShared() *Shared { return &Shared{entries: map[link.Key]cache.Entry{}} }

// SetDown makes every method fail with err; nil ends it.
func (s *Shared) SetDown(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

// Forget drops everything, as FLUSHALL does.
func (s *Shared) Forget() { s.Restore(map[link.Key]cache.Entry{}) }

// Snapshot returns what is kept.
func (s *Shared) Snapshot() map[link.Key]cache.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.entries)
}

// Restore brings a snapshot back, as a start from an old file or a fail-over to a replica
// that was behind does.
func (s *Shared) Restore(all map[link.Key]cache.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = all
}

// Gets returns how often Get was called.
func (s *Shared) Gets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gets
}

// Get implements cache.Shared.
func (s *Shared) Get(_ context.Context, k link.Key) (cache.Entry, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gets++
	if s.down != nil {
		return cache.Entry{}, false, s.down
	}
	e, ok := s.entries[k]
	if !ok || !time.Now().Before(e.Until) {
		return cache.Entry{}, false, nil
	}
	return e, true, nil
}

// Put implements cache.Shared.
func (s *Shared) Put(_ context.Context, k link.Key, e cache.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return s.down
	}
	now := time.Now()
	old, ok := s.entries[k]
	if ok && now.Before(old.Until) && (old.Version() > e.Version() || (old.Version() == e.Version() && e.Void)) {
		return nil
	}
	if now.Before(e.Until) {
		s.entries[k] = e
	}
	return nil
}
