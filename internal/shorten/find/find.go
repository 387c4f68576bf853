// Package find reads and finds links. Read find.go; mostclicked.go orders links by their clicks.
package find

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/search"
	"curt/internal/shorten"
)

// maxReads bounds the links that one page reads from the store, where the index knows
// a filter only roughly: among 10 million links 250 took 16 ms of one processor, and
// eight pages at once may take 50.
const maxReads = 150

// Finder reads and finds links. It is safe for many goroutines.
type Finder struct {
	// Set once in New.
	store   link.Store
	queue   shorten.Queue
	index   search.Index   // nil = there is none
	ranking search.Ranking // nil = there is none
}

// New returns a Finder. Index and ranking may be nil.
func New(store link.Store, queue shorten.Queue, index search.Index, ranking search.Ranking) *Finder {
	return &Finder{store: store, queue: queue, index: index, ranking: ranking}
}

// Get returns a link that the caller sees. What is deleted, or another's, is
// link.ErrNotFound; a link that was accepted and never written says why, as shorten.Unwritten.
func (s *Finder) Get(ctx context.Context, who auth.Principal, k link.Key) (link.Link, error) {
	if err := auth.May(who, auth.ReadLink, auth.Resource{}); err != nil {
		return link.Link{}, err
	}
	l, err := s.find(ctx, who, k)
	if errors.Is(err, link.ErrNotFound) && l.Unwritten() != 0 && auth.May(who, auth.Unrestricted, auth.In(l.Workspace)) == nil {
		return link.Link{}, fmt.Errorf("get %s: %w", k, shorten.Unwritten(&l))
	}
	return l, err
}

// Exists returns nil for a link that the caller sees and may count the clicks of;
// otherwise the errors of Get.
func (s *Finder) Exists(ctx context.Context, who auth.Principal, k link.Key) error {
	if err := auth.May(who, auth.ReadStats, auth.Resource{}); err != nil {
		return err
	}
	_, err := s.find(ctx, who, k)
	return err
}

// Owner returns the workspace of a link that the caller sees and may do something to;
// otherwise the errors of Get.
func (s *Finder) Owner(ctx context.Context, who auth.Principal, a auth.Action, k link.Key) (link.WorkspaceID, error) {
	if err := auth.May(who, a, auth.Resource{}); err != nil {
		return "", err
	}
	l, err := s.find(ctx, who, k)
	return l.Workspace, err
}

// find returns a link, and a tombstone with link.ErrNotFound.
func (s *Finder) find(ctx context.Context, who auth.Principal, k link.Key) (link.Link, error) {
	pending, waits := s.queue.Find(k)
	l, err := s.store.Get(ctx, k)
	if !waits && errors.Is(err, link.ErrNotFound) {
		var failed error
		if pending, waits, failed = s.queue.Elsewhere(ctx, k); failed != nil {
			return link.Link{}, fmt.Errorf("get %s: %w", k, failed)
		}
	}
	if waits && errors.Is(err, link.ErrNotFound) {
		l, err = pending, nil
	}
	if err != nil {
		return link.Link{}, fmt.Errorf("get %s: %w", k, err)
	}
	if !shorten.Visible(who, l) {
		return l, fmt.Errorf("get %s: %w", k, link.ErrNotFound)
	}
	return l, nil
}

// List returns a page of the links that the caller sees; f.Workspace is the
// caller's own, unless the caller is an admin, who sees all.
func (s *Finder) List(ctx context.Context, who auth.Principal, f link.Filter, p link.Page) (link.Slice, error) {
	if err := mayList(who); err != nil {
		return link.Slice{}, err
	}
	f.Workspace = auth.Within(who, f.Workspace)
	slice, err := s.store.List(ctx, f, p)
	if err != nil {
		return link.Slice{}, fmt.Errorf("list links: %w", err)
	}
	return slice, nil
}

// Find returns a page of the links that the caller sees and f chooses; f.Workspace is
// the caller's own, unless the caller is an admin, who sees all. What the link store
// can list by itself it lists, up to this moment; the rest is asked of the index,
// which is seconds behind, and each of its hits is read from the store, so that what
// is shown is true. A page may be short, even empty, before the end.
func (s *Finder) Find(ctx context.Context, now time.Time, who auth.Principal, f search.Filter, p link.Page) (link.Slice, error) {
	if err := mayList(who); err != nil {
		return link.Slice{}, err
	}
	f.Workspace = auth.Within(who, f.Workspace)
	if f.Order != search.MostClicked && f.State == 0 && f.Tag == "" && len(f.Words) == 0 {
		return s.List(ctx, who, link.Filter{
			Workspace: f.Workspace, Domain: f.Domain, Status: f.Status, Oldest: f.Order == search.Oldest,
		}, p)
	}
	slice, err := s.search(ctx, now, f, p)
	if errors.Is(err, search.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", link.ErrUnavailable, err)
	}
	if err != nil {
		return link.Slice{}, fmt.Errorf("find links: %w", err)
	}
	return slice, nil
}

func mayList(who auth.Principal) error {
	if err := auth.May(who, auth.ReadLink, auth.Resource{}); err != nil {
		return err
	}
	if who.IsAnonymous() {
		return auth.ErrUnauthenticated
	}
	return nil
}

// errFilling: what the index says would be incomplete.
var errFilling = fmt.Errorf("the search index is being built: %w", search.ErrUnavailable)

func (s *Finder) search(ctx context.Context, now time.Time, f search.Filter, p link.Page) (slice link.Slice, err error) {
	if s.index == nil {
		return slice, search.ErrUnavailable
	}
	at, err := s.index.Position(ctx)
	switch {
	case err != nil:
		return slice, err
	case !at.Filled:
		return slice, errFilling
	case p.Limit < 1 || p.Limit > link.MaxPage:
		return slice, fmt.Errorf("limit %d: %w", p.Limit, link.ErrInvalid)
	}
	if f.Order == search.MostClicked {
		return s.mostClicked(ctx, now, &f, p)
	}
	page := search.Page{Oldest: f.Order == search.Oldest}
	if page.From, err = parsePosition(p.After); err != nil {
		return slice, err
	}
	q := f.Query(now)
	for reads := 0; ; {
		page.Limit = p.Limit
		hits, err := s.index.Find(ctx, q, page)
		if err != nil {
			return slice, err
		}
		for _, hit := range hits.Found {
			if len(slice.Links) == p.Limit {
				slice.Next = position(hit.ID)
				return slice, nil
			}
			if err := s.keep(ctx, now, &f, hit, &slice); err != nil {
				return slice, err
			}
		}
		reads += len(hits.Found)
		if !hits.More {
			return slice, nil
		}
		slice.Next, page.From = position(hits.Next), hits.Next
		if len(hits.Found) < page.Limit || len(slice.Links) == p.Limit || reads >= maxReads {
			return slice, nil
		}
		slice.Next = ""
	}
}

// keep adds a hit to the page if the link is as the index says.
func (s *Finder) keep(ctx context.Context, now time.Time, f *search.Filter, hit search.Hit, to *link.Slice) error {
	l, err := s.store.Get(ctx, hit.Key)
	switch {
	case errors.Is(err, link.ErrNotFound):
		return nil
	case err != nil:
		return err
	case l.ID == hit.ID && f.Matches(&l, now):
		to.Links = append(to.Links, l)
	}
	return nil
}

func position(id link.ID) link.Cursor { return link.Cursor(hex.EncodeToString(id[:])) }

func parsePosition(c link.Cursor) (id link.ID, err error) {
	if c == "" {
		return id, nil
	}
	raw, err := hex.DecodeString(string(c))
	if err != nil || len(raw) != len(id) {
		return id, fmt.Errorf("cursor %q: %w", c, link.ErrInvalid)
	}
	return link.ID(raw), nil
}
