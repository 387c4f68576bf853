package linktest

import (
	"context"
	"fmt"
	"time"

	"curt/internal/link"
)

// Op names a method of link.Store for WithFaults.
type Op string

// The operations that WithFaults may break.
const (
	OpLookup  Op = "lookup"
	OpGet     Op = "get"
	OpCreate  Op = "create"
	OpReplace Op = "replace"
	OpList    Op = "list"
	OpExpired Op = "expired"
	OpChanges Op = "changes"
	OpHead    Op = "head"
	OpChosen  Op = "chosen"
)

// WithFaults returns s behind a wire that f breaks. f is asked before each
// operation, with the zero key for those that name none:
//
//	apply, nil    the operation happens and its own result is returned
//	apply, err    it happens, and err is returned: a lost acknowledgement
//	!apply, err   it does not happen, and err is returned: a lost request
//
// Neither apply nor an error is a mistake of the test and panics. The result
// offers no optional interface.
func WithFaults(s link.Store, f func(op Op, k link.Key) (apply bool, err error)) link.Store {
	return &faulty{store: s, decide: f}
}

type faulty struct {
	store  link.Store
	decide func(Op, link.Key) (bool, error)
}

// through runs call as decided; an injected error hides what call returned.
func through[T any](f *faulty, op Op, k link.Key, call func() (T, error)) (T, error) {
	apply, fault := f.decide(op, k)
	var none T
	if !apply && fault == nil {
		panic(fmt.Sprintf("linktest: %s of %s neither applied nor failed", op, k))
	}
	if !apply {
		return none, fault
	}
	got, err := call()
	if fault != nil {
		return none, fault
	}
	return got, err
}

func (f *faulty) Lookup(ctx context.Context, k link.Key) (link.Target, error) {
	return through(f, OpLookup, k, func() (link.Target, error) { return f.store.Lookup(ctx, k) })
}

func (f *faulty) Get(ctx context.Context, k link.Key) (link.Link, error) {
	return through(f, OpGet, k, func() (link.Link, error) { return f.store.Get(ctx, k) })
}

func (f *faulty) Create(ctx context.Context, l link.Link) (link.Link, error) {
	return through(f, OpCreate, l.Key, func() (link.Link, error) { return f.store.Create(ctx, l) })
}

func (f *faulty) Replace(ctx context.Context, l link.Link, e link.Edit) (link.Link, error) {
	return through(f, OpReplace, l.Key, func() (link.Link, error) { return f.store.Replace(ctx, l, e) })
}

func (f *faulty) List(ctx context.Context, filter link.Filter, p link.Page) (link.Slice, error) {
	return through(f, OpList, link.Key{}, func() (link.Slice, error) { return f.store.List(ctx, filter, p) })
}

// walk is a page and where it ended.
type walk[T, C any] struct {
	page []T
	next C
}

// walking is through for a page.
func walking[T, C any](f *faulty, op Op, call func() ([]T, C, error)) ([]T, C, error) {
	w, err := through(f, op, link.Key{}, func() (walk[T, C], error) {
		page, next, err := call()
		return walk[T, C]{page, next}, err
	})
	return w.page, w.next, err
}

func (f *faulty) Expired(ctx context.Context, after link.Cursor, before time.Time, n int) ([]link.Key, link.Cursor, error) {
	return walking(f, OpExpired, func() ([]link.Key, link.Cursor, error) { return f.store.Expired(ctx, after, before, n) })
}

func (f *faulty) Changes(ctx context.Context, after link.Position, n int) ([]link.Change, link.Position, error) {
	return walking(f, OpChanges, func() ([]link.Change, link.Position, error) { return f.store.Changes(ctx, after, n) })
}

func (f *faulty) Head(ctx context.Context) (link.Position, error) {
	return through(f, OpHead, link.Key{}, func() (link.Position, error) { return f.store.Head(ctx) })
}

func (f *faulty) Chosen(ctx context.Context, after link.Cursor, n int) ([]link.Key, link.Cursor, error) {
	return walking(f, OpChosen, func() ([]link.Key, link.Cursor, error) { return f.store.Chosen(ctx, after, n) })
}

func (f *faulty) Close() error {
	if err := f.store.Close(); err != nil {
		return fmt.Errorf("close the store behind faults: %w", err)
	}
	return nil
}
