package shorten

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"curt/internal/auth"
	"curt/internal/link"
	"curt/internal/search"
)

// maxReads bounds the links that one page reads from the store, where the index knows
// a filter only roughly: among 10 million links 250 took 16 ms of one processor, and
// eight pages at once may take 50.
const maxReads = 150

// Find returns a page of the links that the caller sees and f chooses; f.Workspace is
// the caller's own, unless the caller is an admin, who sees all. What the link store
// can list by itself it lists, up to this moment; the rest is asked of the index,
// which is seconds behind, and each of its hits is read from the store, so that what
// is shown is true. A page may be short, even empty, before the end.
func (c *Creator) Find(ctx context.Context, now time.Time, who auth.Principal, f search.Filter, p link.Page) (link.Slice, error) {
	if err := mayList(who); err != nil {
		return link.Slice{}, err
	}
	f.Workspace = auth.Within(who, f.Workspace)
	if f.Order != search.MostClicked && f.State == 0 && f.Tag == "" && len(f.Words) == 0 {
		return c.List(ctx, who, link.Filter{
			Workspace: f.Workspace, Domain: f.Domain, Status: f.Status, Oldest: f.Order == search.Oldest,
		}, p)
	}
	slice, err := c.search(ctx, now, f, p)
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
var errFilling = fmt.Errorf("the search index is being filled: %w", search.ErrUnavailable)

func (c *Creator) search(ctx context.Context, now time.Time, f search.Filter, p link.Page) (slice link.Slice, err error) {
	if c.index == nil {
		return slice, search.ErrUnavailable
	}
	at, err := c.index.Position(ctx)
	switch {
	case err != nil:
		return slice, err
	case !at.Filled:
		return slice, errFilling
	case p.Limit < 1 || p.Limit > link.MaxPage:
		return slice, fmt.Errorf("limit %d: %w", p.Limit, link.ErrInvalid)
	}
	if f.Order == search.MostClicked {
		return c.mostClicked(ctx, now, &f, p)
	}
	page := search.Page{Oldest: f.Order == search.Oldest}
	if page.From, err = parsePosition(p.After); err != nil {
		return slice, err
	}
	q := f.Query(now)
	for reads := 0; ; {
		page.Limit = p.Limit
		hits, err := c.index.Find(ctx, q, page)
		if err != nil {
			return slice, err
		}
		for _, hit := range hits.Found {
			if len(slice.Links) == p.Limit {
				slice.Next = position(hit.ID)
				return slice, nil
			}
			if err := c.keep(ctx, now, &f, hit, &slice); err != nil {
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
func (c *Creator) keep(ctx context.Context, now time.Time, f *search.Filter, hit search.Hit, to *link.Slice) error {
	l, err := c.store.Get(ctx, hit.Key)
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
