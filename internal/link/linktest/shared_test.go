package linktest_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"curt/internal/link"
	"curt/internal/link/linktest"
	"curt/internal/testkit"
)

// part is a prefix in a store that others use, as a table of key and value is shared by tests: it
// has domains and workspaces of its own. Whatever it creates a neighbour does, too.
type part struct {
	*linktest.Memory

	name  string
	names *sync.Map // of workspaces too long for a prefix
}

var neighbours struct {
	sync.Mutex
	made int
}

// TestPartsOfASharedStore runs the suite over one store that is never empty.
func TestPartsOfASharedStore(t *testing.T) {
	testkit.Unraced(t) // TestMemory runs the same store under the race detector
	shared := linktest.NewMemory()
	linktest.Run(t, linktest.Harness{
		Open: func(t testing.TB) link.Store {
			neighbours.Lock()
			defer neighbours.Unlock()
			neighbours.made++
			return &ended{Store: &part{shared, fmt.Sprintf("part%d", neighbours.made), new(sync.Map)}}
		},
		Again:    func(_ testing.TB, s link.Store) link.Store { return &ended{Store: s.(*ended).Store} },
		Features: linktest.Features{},
	})
}

// ended is a handle that can be closed without the store under it.
type ended struct {
	link.Store

	mu     sync.Mutex
	closed bool
}

func (e *ended) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	return nil
}

func (e *ended) open(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return fmt.Errorf("closed: %w", link.ErrUnavailable)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (e *ended) Lookup(ctx context.Context, k link.Key) (link.Target, error) {
	if err := e.open(ctx); err != nil {
		return link.Target{}, err
	}
	return e.Store.Lookup(ctx, k)
}

func (e *ended) Get(ctx context.Context, k link.Key) (link.Link, error) {
	if err := e.open(ctx); err != nil {
		return link.Link{}, err
	}
	return e.Store.Get(ctx, k)
}

func (e *ended) Create(ctx context.Context, l link.Link) (link.Link, error) {
	if err := e.open(ctx); err != nil {
		return link.Link{}, err
	}
	return e.Store.Create(ctx, l)
}

func (e *ended) Replace(ctx context.Context, l link.Link, edit link.Edit) (link.Link, error) {
	if err := e.open(ctx); err != nil {
		return link.Link{}, err
	}
	return e.Store.Replace(ctx, l, edit)
}

func (e *ended) List(ctx context.Context, f link.Filter, p link.Page) (link.Slice, error) {
	if err := e.open(ctx); err != nil {
		return link.Slice{}, err
	}
	return e.Store.List(ctx, f, p)
}

func (e *ended) Expired(ctx context.Context, after link.Cursor, before time.Time, n int) ([]link.Key, link.Cursor, error) {
	if err := e.open(ctx); err != nil {
		return nil, "", err
	}
	return e.Store.Expired(ctx, after, before, n)
}

func (e *ended) Changes(ctx context.Context, after link.Position, n int) ([]link.Change, link.Position, error) {
	if err := e.open(ctx); err != nil {
		return nil, "", err
	}
	return e.Store.Changes(ctx, after, n)
}

func (e *ended) Head(ctx context.Context) (link.Position, error) {
	if err := e.open(ctx); err != nil {
		return "", err
	}
	return e.Store.Head(ctx)
}

func (e *ended) Chosen(ctx context.Context, after link.Cursor, n int) ([]link.Key, link.Cursor, error) {
	if err := e.open(ctx); err != nil {
		return nil, "", err
	}
	return e.Store.Chosen(ctx, after, n)
}

// in is a key as the shared store has it.
func (p *part) in(k link.Key) link.Key {
	if k.Domain != "" {
		k.Domain = "." + k.Domain
	}
	k.Domain = link.Domain(p.name) + k.Domain
	return k
}

// out is in's inverse; mine is false for keys of others.
func (p *part) out(k link.Key) (own link.Key, mine bool) {
	rest, mine := strings.CutPrefix(string(k.Domain), p.name)
	if mine = mine && (rest == "" || rest[0] == '.'); mine {
		k.Domain = link.Domain(strings.TrimPrefix(rest, "."))
	}
	return k, mine
}

func (p *part) workspace(w link.WorkspaceID) link.WorkspaceID {
	if w == "" {
		return ""
	}
	in := link.WorkspaceID(fmt.Sprintf("%s.%.20s.%d", p.name, w, len(w)))
	p.names.Store(in, w)
	return in
}

func (p *part) link(l link.Link) link.Link {
	l.Key, l.Workspace = p.in(l.Key), p.workspace(l.Workspace)
	return l
}

func (p *part) own(l link.Link, err error) (link.Link, error) {
	if err != nil {
		return link.Link{}, err
	}
	l.Key, _ = p.out(l.Key)
	if w, ok := p.names.Load(l.Workspace); ok {
		l.Workspace = w.(link.WorkspaceID)
	}
	return l, nil
}

func (p *part) Lookup(ctx context.Context, k link.Key) (link.Target, error) {
	return p.Memory.Lookup(ctx, p.in(k))
}

func (p *part) Get(ctx context.Context, k link.Key) (link.Link, error) {
	return p.own(p.Memory.Get(ctx, p.in(k)))
}

func (p *part) Create(ctx context.Context, l link.Link) (link.Link, error) {
	if err := l.Validate(); err != nil {
		return link.Link{}, err
	}
	other := l
	other.Key.Domain, other.Workspace = "neighbour", "neighbour"
	_, _ = p.Memory.Create(ctx, other) // another part's business
	return p.own(p.Memory.Create(ctx, p.link(l)))
}

func (p *part) Replace(ctx context.Context, l link.Link, e link.Edit) (link.Link, error) {
	return p.own(p.Memory.Replace(ctx, p.link(l), e))
}

// List passes over what is others': such pages are short, and may be empty.
func (p *part) List(ctx context.Context, f link.Filter, page link.Page) (link.Slice, error) {
	if f.Domain != nil {
		in := p.in(link.Key{Domain: *f.Domain}).Domain
		f.Domain = &in
	}
	f.Workspace = p.workspace(f.Workspace)
	all, err := p.Memory.List(ctx, f, page)
	own := link.Slice{Next: all.Next}
	for _, l := range all.Links {
		if _, mine := p.out(l.Key); mine {
			l, _ = p.own(l, nil)
			own.Links = append(own.Links, l)
		}
	}
	return own, err
}

func (p *part) Expired(ctx context.Context, after link.Cursor, before time.Time, n int) (own []link.Key, next link.Cursor, err error) {
	for {
		keys, next, err := p.Memory.Expired(ctx, after, before, n)
		if own = p.mine(keys); err != nil || len(own) > 0 {
			return own, next, err
		}
		if len(keys) == 0 {
			return nil, after, nil
		}
		after = next
	}
}

func (p *part) Chosen(ctx context.Context, after link.Cursor, n int) ([]link.Key, link.Cursor, error) {
	keys, next, err := p.Memory.Chosen(ctx, after, n)
	return p.mine(keys), next, err
}

func (p *part) mine(keys []link.Key) (own []link.Key) {
	for _, k := range keys {
		if k, mine := p.out(k); mine {
			own = append(own, k)
		}
	}
	return own
}

func (p *part) Changes(ctx context.Context, after link.Position, n int) (own []link.Change, next link.Position, err error) {
	for len(own) == 0 {
		all, next, err := p.Memory.Changes(ctx, after, n)
		if err != nil || len(all) == 0 {
			return nil, next, err
		}
		after = next
		for _, c := range all {
			if c.Key.Domain != "" {
				if k, mine := p.out(c.Key); mine {
					own = append(own, link.Change{Sequence: c.Sequence, Key: k, Version: c.Version})
				}
			}
		}
	}
	return own, after, nil
}
