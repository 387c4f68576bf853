// Package cachetest is a link store for tests of what stands in front of one: it
// answers at once from memory, and does on request what stores do on bad days: it
// lags behind, waits, fails, and counts who asked.
//
//	s := cachetest.NewSource()
//	s.Put(key, link.Target{…})            // version 1, 2, 3 …
//	s.SetReplica(k, 1)                    // Lookup answers version 1, Get the newest
//	s.OnLookup(func(ctx, k) error { … })  // block, fail, or count
package cachetest

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"curt/internal/link"
)

// Source is a scripted cache.Source, cache.ChangeLog, issued.Chosen and
// link.Spender. It is safe for many goroutines.
type Source struct {
	mu       sync.Mutex
	versions map[link.Key][]link.Target // every version of a key, oldest first
	replica  map[link.Key]int           // how many of them Lookup knows; absent = all
	changes  []link.Change
	trimmed  link.Sequence // changes up to here are gone
	left     map[link.Key]uint64
	onLookup func(ctx context.Context, k link.Key) error
	onGet    func(ctx context.Context, k link.Key) error
	lookups  map[link.Key]int
	gets     map[link.Key]int
	polls    int
	down     error
}

// NewSource returns an empty store.
func NewSource() *Source {
	return &Source{
		versions: map[link.Key][]link.Target{}, replica: map[link.Key]int{}, left: map[link.Key]uint64{},
		lookups: map[link.Key]int{}, gets: map[link.Key]int{},
	}
}

// Put stores the next version of k and appends it to the change log. Missing enums
// are filled in: active, clean, 302.
func (s *Source) Put(k link.Key, t link.Target) link.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Version = link.Version(len(s.versions[k]) + 1)
	if t.Status == 0 {
		t.Status = link.Active
	}
	if t.Safety == 0 {
		t.Safety = link.Clean
	}
	if t.Redirect == 0 {
		t.Redirect = 302
	}
	s.versions[k] = append(s.versions[k], t)
	ch := link.Change{Sequence: link.Sequence(len(s.changes) + 1), Key: k, Version: t.Version}
	s.changes = append(s.changes, ch)
	return ch
}

// SetReplica lets Lookup know only the first n versions of k; n < 0 = all. Get
// knows all, and so "not found" comes from all too.
func (s *Source) SetReplica(k link.Key, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < 0 {
		delete(s.replica, k)
		return
	}
	s.replica[k] = n
}

// CatchUp lets Lookup know at least the first n versions of k.
func (s *Source) CatchUp(k link.Key, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, limited := s.replica[k]; limited {
		s.replica[k] = max(known, n)
	}
}

// SetDown makes every method fail with err; nil ends it.
func (s *Source) SetDown(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

// OnLookup runs f at the end of each Lookup, after the answer was read and before
// it is given; an error of f is the answer.
func (s *Source) OnLookup(f func(ctx context.Context, k link.Key) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onLookup = f
}

// OnGet is OnLookup for Get.
func (s *Source) OnGet(f func(ctx context.Context, k link.Key) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onGet = f
}

// SetLeft bounds the clicks of k for Spend.
func (s *Source) SetLeft(k link.Key, n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left[k] = n
}

// Trim forgets the changes up to and with the sequence.
func (s *Source) Trim(upTo link.Sequence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trimmed = upTo
}

// Lose takes the newest change back, and with it what it did, as a fail-over to a
// standby that lagged.
func (s *Source) Lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.changes[len(s.changes)-1]
	s.changes = s.changes[:len(s.changes)-1]
	s.versions[last.Key] = s.versions[last.Key][:last.Version-1]
}

// Lookups and Gets return how often k was asked for.
func (s *Source) Lookups(k link.Key) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lookups[k]
}

// Gets returns how often the primary was asked for k.
func (s *Source) Gets(k link.Key) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gets[k]
}

// Polls returns how often the change log was read.
func (s *Source) Polls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polls
}

// Lookup implements cache.Source.
func (s *Source) Lookup(ctx context.Context, k link.Key) (link.Target, error) {
	s.mu.Lock()
	s.lookups[k]++
	hook := s.onLookup
	t, err := s.read(k, true)
	s.mu.Unlock()
	if hook != nil {
		if err := hook(ctx, k); err != nil {
			return link.Target{}, err
		}
	}
	return t, err
}

// Get implements cache.Source. The Link holds what a Target is made from.
func (s *Source) Get(ctx context.Context, k link.Key) (link.Link, error) {
	s.mu.Lock()
	s.gets[k]++
	hook := s.onGet
	t, err := s.read(k, false)
	s.mu.Unlock()
	if hook != nil {
		if err := hook(ctx, k); err != nil {
			return link.Link{}, err
		}
	}
	if err != nil {
		return link.Link{}, err
	}
	return asLink(k, t), nil
}

// read returns the newest version that is known; s.mu is held.
func (s *Source) read(k link.Key, replica bool) (link.Target, error) {
	all := s.versions[k]
	if s.down != nil {
		return link.Target{}, s.down
	}
	n, lags := s.replica[k]
	if !replica || !lags || n == 0 { // "not found" is always checked at the primary
		n = len(all)
	}
	if n == 0 {
		return link.Target{}, link.ErrNotFound
	}
	return all[n-1], nil
}

// Changes implements cache.ChangeLog.
func (s *Source) Changes(_ context.Context, at link.Position, n int) ([]link.Change, link.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls++
	after, err := at.Sequence()
	head := link.Sequence(len(s.changes))
	if err = cmp.Or(s.down, err, after.Continues(0, head)); err == nil && after < s.trimmed {
		err = link.ErrConflict
	}
	if err != nil {
		return nil, "", err
	}
	to := min(after+link.Sequence(n), head)
	return slices.Clone(s.changes[after:to]), to.Position(), nil
}

// Head implements cache.ChangeLog.
func (s *Source) Head(context.Context) (link.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return link.Sequence(len(s.changes)).Position(), s.down
}

// Spend implements link.Spender.
func (s *Source) Spend(_ context.Context, k link.Key, n uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return 0, s.down
	}
	left, bounded := s.left[k]
	if !bounded {
		return n, nil
	}
	granted := min(n, left)
	s.left[k] = left - granted
	return granted, nil
}
