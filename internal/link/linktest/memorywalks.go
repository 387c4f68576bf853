package linktest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"curt/internal/link"
)

// listCursor is a position of List: the last link seen, and the filter it is for.
type listCursor struct {
	Filter link.Filter
	ID     link.ID
	Key    link.Key
}

// List implements link.Store.
func (m *Memory) List(ctx context.Context, f link.Filter, p link.Page) (link.Slice, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.ready(ctx, "list"); err != nil {
		return link.Slice{}, err
	}
	if p.Limit < 1 || p.Limit > link.MaxPage {
		return link.Slice{}, fmt.Errorf("list: limit %d: %w", p.Limit, link.ErrInvalid)
	}
	after, err := parseListCursor(p.After, f)
	if err != nil {
		return link.Slice{}, err
	}
	order := func(a, b *link.Link) int { return byAge(*a, *b) }
	if !f.Oldest {
		order = func(a, b *link.Link) int { return byAge(*b, *a) }
	}
	var found []*link.Link
	for _, l := range m.links {
		if matches(l, f) && (after == nil || order(&l, &link.Link{ID: after.ID, Key: after.Key}) > 0) {
			found = append(found, &l)
		}
	}
	slices.SortFunc(found, order)
	page := make([]link.Link, min(len(found), p.Limit))
	for i := range page {
		page[i] = copyOf(*found[i])
	}
	if len(found) <= p.Limit {
		return link.Slice{Links: page}, nil
	}
	last := page[p.Limit-1]
	next, err := json.Marshal(listCursor{Filter: f, ID: last.ID, Key: last.Key})
	if err != nil {
		return link.Slice{}, fmt.Errorf("list: %w", err)
	}
	return link.Slice{Links: page, Next: link.Cursor(next)}, nil
}

func parseListCursor(c link.Cursor, f link.Filter) (*listCursor, error) {
	if c == "" {
		return nil, nil //nolint:nilnil // no cursor is no error
	}
	var at listCursor
	if err := json.Unmarshal([]byte(c), &at); err != nil {
		return nil, fmt.Errorf("list: cursor: %w: %w", link.ErrInvalid, err)
	}
	same := at.Filter.Workspace == f.Workspace && at.Filter.Status == f.Status && at.Filter.Oldest == f.Oldest &&
		at.Filter.Since == f.Since && (at.Filter.Domain == nil) == (f.Domain == nil) && (f.Domain == nil || *at.Filter.Domain == *f.Domain)
	if !same {
		return nil, fmt.Errorf("list: cursor of another filter: %w", link.ErrInvalid)
	}
	return &at, nil
}

func matches(l link.Link, f link.Filter) bool {
	return l.Status != link.Deleted &&
		(f.Workspace == "" || l.Workspace == f.Workspace) &&
		(f.Status == 0 || l.Status == f.Status) &&
		(f.Domain == nil || l.Key.Domain == *f.Domain) &&
		bytes.Compare(l.ID[:], f.Since[:]) >= 0
}

// expiry is a position of Expired.
type expiry struct {
	At  int64
	Key link.Key
}

func (e expiry) compare(other expiry) int {
	return cmp.Or(cmp.Compare(e.At, other.At), compareKeys(e.Key, other.Key))
}

// Expired implements link.Store.
func (m *Memory) Expired(ctx context.Context, after link.Cursor, before time.Time, n int) ([]link.Key, link.Cursor, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.ready(ctx, "expired"); err != nil {
		return nil, "", err
	}
	var from *expiry
	if after != "" {
		if err := json.Unmarshal([]byte(after), &from); err != nil {
			return nil, "", fmt.Errorf("expired: cursor: %w: %w", link.ErrInvalid, err)
		}
	}
	var due []expiry
	for _, l := range m.links {
		e := expiry{At: l.Expires.UnixMilli(), Key: l.Key}
		if l.Status == link.Active && !l.Expires.IsZero() && !l.Expires.After(before) && (from == nil || e.compare(*from) > 0) {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, expiry.compare)
	due = due[:min(n, len(due))]
	if len(due) == 0 {
		return nil, after, nil
	}
	keys := make([]link.Key, len(due))
	for i, e := range due {
		keys[i] = e.Key
	}
	next, err := json.Marshal(due[len(due)-1])
	if err != nil {
		return nil, "", fmt.Errorf("expired: %w", err)
	}
	return keys, link.Cursor(next), nil
}

// Changes implements link.Store. Memory keeps all changes.
func (m *Memory) Changes(ctx context.Context, after link.Position, n int) ([]link.Change, link.Position, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	page, next, err := m.after(ctx, after, n)
	var changes []link.Change
	for _, e := range page {
		changes = append(changes, e.Change)
	}
	return changes, next, err
}

// Events implements link.EventLog.
func (m *Memory) Events(ctx context.Context, after link.Position, n int) ([]link.Event, link.Position, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	page, next, err := m.after(ctx, after, n)
	return slices.Clone(page), next, err
}

// ExpiryChanges implements link.EventLog.
func (m *Memory) ExpiryChanges(ctx context.Context, after link.Position, n int) ([]link.Key, link.Position, bool, error) {
	return link.ReadExpiryChanges(ctx, m, after, n)
}

func (m *Memory) after(ctx context.Context, at link.Position, n int) ([]link.Event, link.Position, error) {
	if err := m.ready(ctx, "changes"); err != nil {
		return nil, "", err
	}
	after, err := at.Sequence()
	head := link.Sequence(len(m.changes))
	if err = errors.Join(err, after.Continues(0, head)); err != nil {
		return nil, "", err
	}
	to := min(after+link.Sequence(n), head)
	return m.changes[after:to], to.Position(), nil
}

// Creates implements link.CreateLog.
func (m *Memory) Creates(ctx context.Context, after link.Position, n int) ([]link.Link, link.Position, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.ready(ctx, "creates"); err != nil {
		return nil, "", err
	}
	at, err := strconv.Atoi(cmp.Or(string(after), "0"))
	switch {
	case err != nil || at < 0:
		return nil, "", link.ErrInvalid
	case at > len(m.keys):
		return nil, "", link.ErrConflict
	}
	var links []link.Link
	for ; at < len(m.keys) && len(links) < n; at++ {
		if l := m.links[m.keys[at]]; l.CodeKind == link.Counted {
			links = append(links, copyOf(l))
		}
	}
	return links, link.Position(strconv.Itoa(at)), nil
}

// CreatesEnded implements link.CreateLog.
func (m *Memory) CreatesEnded(ctx context.Context, after link.Position, by time.Time, n int) (keys []link.Key, next link.Position, more bool, err error) {
	links, next, err := m.Creates(ctx, after, n)
	for i := range links {
		if links[i].Ended(by) {
			keys = append(keys, links[i].Key)
		}
	}
	return keys, next, len(links) == n, err
}

// CreatesHead implements link.CreateLog.
func (m *Memory) CreatesHead(ctx context.Context) (link.Position, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return link.Position(strconv.Itoa(len(m.keys))), m.ready(ctx, "head of creates")
}

// Head implements link.Store.
func (m *Memory) Head(ctx context.Context) (link.Position, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return link.Sequence(len(m.changes)).Position(), m.ready(ctx, "head")
}

// Chosen implements link.Store: in the order of creation.
func (m *Memory) Chosen(ctx context.Context, after link.Cursor, n int) ([]link.Key, link.Cursor, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.ready(ctx, "chosen"); err != nil {
		return nil, "", err
	}
	from := 0
	if after != "" {
		var err error
		if from, err = strconv.Atoi(string(after)); err != nil || from < 0 || from > len(m.keys) {
			return nil, "", fmt.Errorf("unminted: cursor %q: %w", after, link.ErrInvalid)
		}
	}
	var keys []link.Key
	for i, k := range m.keys[from:] {
		if m.links[k].CodeKind != link.Chosen {
			continue
		}
		if len(keys) == n {
			return keys, link.Cursor(strconv.Itoa(from + i)), nil
		}
		keys = append(keys, k)
	}
	return keys, "", nil
}
