package sqlitedb

import (
	"context"
)

// What suites of the packages above look at and hold.

// Exclusive runs f on the writing connection while nobody writes, outside of any transaction.
func (s *Store) Exclusive(ctx context.Context, f func(t *Tx) error) error {
	return s.writer.exclusive(ctx, func() error { return s.writer.conn.Do(f) })
}

// Checkpoint does what Run does when the WAL is long.
func (s *Store) Checkpoint(ctx context.Context) error { return s.checkpoint(ctx, SQLCheckpoint) }

// Queued returns how many callers wait for the next transaction.
func (s *Store) Queued() int { return s.writer.queued() }

// SetFileReader lets f stand for what reads the files whole.
func (s *Store) SetFileReader(f func(path string) error) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.disk.Read = f
}
