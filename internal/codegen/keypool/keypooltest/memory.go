package keypooltest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"curt/internal/codegen/keypool"
	"curt/internal/link"
)

// Memory is a keypool.Store in memory, the model of every other.
type Memory struct {
	mu     sync.Mutex
	next   uint64
	unused []batch // in the order of Put
	used   []batch
}

type batch struct {
	keypool.Batch

	pool        string
	size        int // keys that are not put back
	leaked      int
	held        bool
	taken, seen time.Time
}

var _ keypool.Store = (*Memory)(nil)

// NewMemory returns a store without pools.
func NewMemory() *Memory { return &Memory{} }

// Clone returns a store as a backup of this moment would have it.
func (m *Memory) Clone() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Memory{next: m.next, unused: slices.Clone(m.unused), used: slices.Clone(m.used)}
}

// DropUnused leaves pools without unused keys, as whoever restores a backup has to.
func (m *Memory) DropUnused() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unused = nil
}

// Put implements keypool.Store.
func (m *Memory) Put(ctx context.Context, pool string, keys []link.Code) error {
	return m.do(ctx, func() error { return m.put(pool, keys) })
}

func (m *Memory) put(pool string, keys []link.Code) error {
	if _, err := keypool.Encode(keys); err != nil {
		return err
	}
	m.next++
	m.unused = append(m.unused, batch{Batch: keypool.Batch{ID: m.next, Keys: slices.Clone(keys)}, pool: pool, size: len(keys)})
	return nil
}

// Take implements keypool.Store.
func (m *Memory) Take(ctx context.Context, pool, holder string) (taken keypool.Batch, err error) {
	err = m.do(ctx, func() error {
		i := slices.IndexFunc(m.unused, func(b batch) bool { return b.pool == pool })
		if i < 0 {
			return keypool.ErrEmpty
		}
		b := m.unused[i]
		m.unused = slices.Delete(m.unused, i, i+1)
		b.Holder, b.held, b.taken, b.seen = holder, true, time.Now(), time.Now()
		m.used = append(m.used, b)
		taken = b.Batch
		return nil
	})
	return taken, err
}

// Release implements keypool.Store.
func (m *Memory) Release(ctx context.Context, ended keypool.Batch, rest []link.Code, leaked int) error {
	return m.do(ctx, func() error {
		i := slices.IndexFunc(m.used, func(b batch) bool { return b.ID == ended.ID && b.Holder == ended.Holder && b.held })
		if i < 0 {
			return fmt.Errorf("batch %d: %w", ended.ID, link.ErrNotFound)
		}
		b := &m.used[i]
		if len(rest) > 0 {
			if err := m.put(b.pool, rest); err != nil {
				return err
			}
		}
		b.held, b.leaked, b.size = false, leaked, b.size-len(rest)
		return nil
	})
}

// Abandon implements keypool.Store.
func (m *Memory) Abandon(ctx context.Context, holder string) (leaked uint64, err error) {
	err = m.do(ctx, func() error {
		leaked = m.leak(func(b batch) bool { return b.Holder == holder })
		return nil
	})
	return leaked, err
}

// Renew implements keypool.Store.
func (m *Memory) Renew(ctx context.Context, holder string, silence time.Duration) (leaked uint64, err error) {
	err = m.do(ctx, func() error {
		now := time.Now()
		for i := range m.used {
			if m.used[i].Holder == holder {
				m.used[i].seen = now
			}
		}
		leaked = m.leak(func(b batch) bool { return b.Holder != holder && now.Sub(b.seen) > silence })
		return nil
	})
	return leaked, err
}

func (m *Memory) leak(lost func(batch) bool) (leaked uint64) {
	for i, b := range m.used {
		if b.held && lost(b) {
			m.used[i].held, m.used[i].leaked = false, b.size
			leaked += uint64(b.size)
		}
	}
	return leaked
}

// Level implements keypool.Store.
func (m *Memory) Level(ctx context.Context, pool string) (l keypool.Level, err error) {
	err = m.do(ctx, func() error {
		for _, b := range m.unused {
			if b.pool == pool {
				l.Unused += uint64(b.size)
			}
		}
		for _, b := range m.used {
			if b.pool != pool {
				continue
			}
			l.Leaked += uint64(b.leaked)
			if b.held {
				l.Held += uint64(b.size)
			}
			if time.Since(b.taken) <= keypool.RateWindow {
				l.Taken += uint64(b.size)
			}
		}
		return nil
	})
	return l, err
}

func (m *Memory) do(ctx context.Context, f func() error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", link.ErrUnavailable, context.Cause(ctx))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return f()
}

// WithFaults returns s with f asked before every call, as codegentest.WithFaults.
func WithFaults(s keypool.Store, f func(ctx context.Context, op string) (apply bool, err error)) keypool.Store {
	return faulty{inner: s, fault: f}
}

type faulty struct {
	inner keypool.Store
	fault func(ctx context.Context, op string) (apply bool, err error)
}

func (f faulty) Put(ctx context.Context, pool string, keys []link.Code) error {
	_, err := ask(ctx, f, "put", func() (int, error) { return 0, f.inner.Put(ctx, pool, keys) })
	return err
}

func (f faulty) Take(ctx context.Context, pool, holder string) (keypool.Batch, error) {
	return ask(ctx, f, "take", func() (keypool.Batch, error) { return f.inner.Take(ctx, pool, holder) })
}

func (f faulty) Release(ctx context.Context, b keypool.Batch, rest []link.Code, leaked int) error {
	_, err := ask(ctx, f, "release", func() (int, error) { return 0, f.inner.Release(ctx, b, rest, leaked) })
	return err
}

func (f faulty) Abandon(ctx context.Context, holder string) (uint64, error) {
	return ask(ctx, f, "abandon", func() (uint64, error) { return f.inner.Abandon(ctx, holder) })
}

func (f faulty) Renew(ctx context.Context, holder string, silence time.Duration) (uint64, error) {
	return ask(ctx, f, "renew", func() (uint64, error) { return f.inner.Renew(ctx, holder, silence) })
}

func (f faulty) Level(ctx context.Context, pool string) (keypool.Level, error) {
	return ask(ctx, f, "level", func() (keypool.Level, error) { return f.inner.Level(ctx, pool) })
}

func ask[T any](ctx context.Context, f faulty, op string, call func() (T, error)) (none T, err error) {
	apply, fault := f.fault(ctx, op)
	if fault == nil {
		return call()
	}
	if apply {
		if _, err := call(); err != nil {
			return none, err
		}
	}
	return none, fault
}
