package find

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"curt/internal/link"
	"curt/internal/search"
)

// mostClicked is a page of links by their clicks of some seconds ago. When few links
// match, all of them are put in order. When many do, the most clicked of the
// workspace are read one after the other, and those that match stay; behind the last
// come the links that nobody clicked, newest first. A link whose clicks change while
// somebody walks may come twice or not at all.
func (s *Finder) mostClicked(ctx context.Context, now time.Time, f *search.Filter, p link.Page) (link.Slice, error) {
	if s.ranking == nil {
		return link.Slice{}, search.ErrUnavailable
	}
	from, err := parsePlace(p.After)
	if err != nil {
		return link.Slice{}, err
	}
	w := clickWalk{finder: s, now: now, filter: f, limit: p.Limit}
	hits, err := s.index.Find(ctx, f.Query(now), search.Page{Limit: maxReads})
	if err != nil {
		return link.Slice{}, err
	}
	if !hits.More {
		err = w.few(ctx, hits.Found, from)
		return w.slice, err
	}
	if from.Clicks > 0 {
		if done, err := w.ranked(ctx, from); done || err != nil {
			return w.slice, err
		}
		from = lastPlace()
	}
	err = w.unclicked(ctx, from)
	return w.slice, err
}

// clickWalk is one page on its way.
type clickWalk struct {
	finder *Finder
	now    time.Time
	filter *search.Filter
	limit  int
	reads  int
	slice  link.Slice
}

// take reads a link and keeps it if it matches; full says that the page has no room for
// it, and goes on there.
func (w *clickWalk) take(ctx context.Context, hit search.Hit, clicks uint64) (full bool, err error) {
	if len(w.slice.Links) == w.limit || w.reads == maxReads {
		w.slice.Next = placeCursor(search.RankPosition{Clicks: clicks, ID: hit.ID})
		return true, nil
	}
	w.reads++
	return false, w.finder.keep(ctx, w.now, w.filter, hit, &w.slice)
}

// few puts all that was found in order.
func (w *clickWalk) few(ctx context.Context, found []search.Hit, from search.RankPosition) error {
	ids := make([]link.ID, len(found))
	for i := range found {
		ids[i] = found[i].ID
	}
	clicks, err := w.finder.ranking.Clicks(ctx, ids)
	if err != nil {
		return err
	}
	order := make([]search.Rank, len(found))
	for i := range found {
		order[i] = search.Rank{Hit: found[i], Clicks: clicks[i]}
	}
	slices.SortFunc(order, func(a, b search.Rank) int { return placeOf(a).Compare(placeOf(b)) })
	for _, r := range order {
		if placeOf(r).Compare(from) < 0 {
			continue
		}
		if full, err := w.take(ctx, r.Hit, r.Clicks); full || err != nil {
			return err
		}
	}
	return nil
}

// ranked takes links that were clicked; done says that the page ends among them.
func (w *clickWalk) ranked(ctx context.Context, from search.RankPosition) (done bool, err error) {
	for {
		n := w.limit + 1
		top, err := w.finder.ranking.Top(ctx, w.filter.Workspace, from, n)
		if err != nil {
			return true, err
		}
		for _, r := range top {
			if from = placeOf(r); from.Clicks > 0 {
				if full, err := w.take(ctx, r.Hit, r.Clicks); full || err != nil {
					return true, err
				}
			}
		}
		if len(top) < n {
			return false, nil
		}
		from = behind(from)
	}
}

// unclicked takes links that nobody clicked.
func (w *clickWalk) unclicked(ctx context.Context, from search.RankPosition) error {
	page := search.Page{From: from.ID, Limit: w.limit + 1}
	if from == lastPlace() {
		page.From = link.ID{}
	}
	for {
		hits, err := w.finder.index.Find(ctx, w.filter.Query(w.now), page)
		if err != nil {
			return err
		}
		ids := make([]link.ID, len(hits.Found))
		for i := range hits.Found {
			ids[i] = hits.Found[i].ID
		}
		clicks, err := w.finder.ranking.Clicks(ctx, ids)
		if err != nil {
			return err
		}
		for i, hit := range hits.Found {
			if clicks[i] > 0 {
				w.reads++ // it cost a look
				continue
			}
			if full, err := w.take(ctx, hit, 0); full || err != nil {
				return err
			}
		}
		if !hits.More {
			return nil
		}
		if page.From = hits.Next; len(hits.Found) < page.Limit || w.reads >= maxReads {
			w.slice.Next = placeCursor(search.RankPosition{ID: hits.Next})
			return nil
		}
	}
}

func placeOf(r search.Rank) search.RankPosition {
	return search.RankPosition{Clicks: r.Clicks, ID: r.ID}
}

// firstPlace is before every link, lastPlace before those without clicks.
func firstPlace() search.RankPosition {
	return search.RankPosition{Clicks: math.MaxUint64, ID: link.ID(slices.Repeat([]byte{0xff}, len(link.ID{})))}
}

func lastPlace() search.RankPosition { p := firstPlace(); p.Clicks = 0; return p }

// behind is the place that follows.
func behind(p search.RankPosition) search.RankPosition {
	for i := len(p.ID) - 1; i >= 0; i-- {
		if p.ID[i]--; p.ID[i] != 0xff {
			return p
		}
	}
	p.Clicks--
	return p
}

func placeCursor(p search.RankPosition) link.Cursor {
	return link.Cursor(strconv.FormatUint(p.Clicks, 10) + "-" + string(position(p.ID)))
}

func parsePlace(c link.Cursor) (p search.RankPosition, err error) {
	if c == "" {
		return firstPlace(), nil
	}
	clicks, id, _ := strings.Cut(string(c), "-")
	if p.Clicks, err = strconv.ParseUint(clicks, 10, 64); err != nil || id == "" {
		return p, fmt.Errorf("cursor %q: %w", c, link.ErrInvalid)
	}
	p.ID, err = parsePosition(link.Cursor(id))
	return p, err
}
