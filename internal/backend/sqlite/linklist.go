package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"curt/internal/link"
)

const (
	// listChunk is how many entries of the age index a walk reads at a time.
	listChunk = 256
	// listBudget bounds the entries that one List reads when its filter matches few
	// of them: among 10 million links 8,000 took 20 ms of one processor, and eight pages
	// at once may take 50. Then the page is short and says where it stopped.
	listBudget = 4_000
)

// List implements link.Store. It walks the age index of the workspace, or of every
// workspace side by side, which is cheap for the dozens that an instance has.
func (s *Links) List(ctx context.Context, f link.Filter, p link.Page) (link.Slice, error) {
	if p.Limit < 1 || p.Limit > link.MaxPage {
		return link.Slice{}, fmt.Errorf("list: limit %d: %w", p.Limit, link.ErrInvalid)
	}
	w := &listWalk{filter: f, damages: &s.damages}
	if p.After != "" {
		after, err := parseListCursor(p.After, f)
		if err != nil {
			return link.Slice{}, fmt.Errorf("list: %w", err)
		}
		w.after = &after
	}
	var page link.Slice
	err := s.readMany(ctx, func(t *tx) (err error) {
		if err := w.open(t); err != nil {
			return err
		}
		page, err = w.page(t, p.Limit)
		return err
	})
	if err != nil {
		return link.Slice{}, fmt.Errorf("list: %w", err)
	}
	return page, nil
}

// listWalk merges the age indexes of some workspaces.
type listWalk struct {
	filter link.Filter
	after  *listPosition
	lanes  []*listLane
	read   int // entries so far

	damages *damages // is told of what the walk passes over
}

// listLane is the walk through one workspace.
type listLane struct {
	workspace int64
	last      link.ID // of the last entry read
	ahead     []listEntry
	drained   bool
}

// listEntry is what the filter needs of a link.
type listEntry struct {
	n      int64
	at     listPosition
	status link.Status
	domain link.Domain
}

// open finds the workspaces and where each of them goes on.
func (w *listWalk) open(t *tx) error {
	query, args := sqlWorkspaces, []any{}
	if w.filter.Workspace != "" {
		query, args = sqlWorkspace, []any{string(w.filter.Workspace)}
	}
	return t.each(query, func(row []driver.Value) error {
		lane := &listLane{workspace: next[int64](&scanner{row: row})}
		if !w.filter.Oldest {
			lane.last = link.ID(bytes.Repeat([]byte{0xff}, len(link.ID{})))
		}
		if w.filter.Oldest && !w.filter.Since.IsZero() {
			lane.last = listPosition{id: w.filter.Since}.neighbour(true)
		}
		if w.after != nil {
			lane.last = w.after.neighbour(w.filter.Oldest)
		}
		w.lanes = append(w.lanes, lane)
		return nil
	}, args...)
}

// page reads up to limit links and looks one further, to know whether it is the end.
func (w *listWalk) page(t *tx, limit int) (page link.Slice, err error) {
	chosen := make([]listEntry, 0, limit)
	for last := (listPosition{}); page.Next == ""; {
		e, ok, err := w.next(t)
		if err != nil {
			return link.Slice{}, err
		}
		if !ok {
			break
		}
		if w.read > listBudget {
			page.Next = e.at.cursor(w.filter) // read, and passed over or chosen below
		}
		if w.matches(e) {
			if len(chosen) == limit {
				page.Next = last.cursor(w.filter)
				break
			}
			chosen = append(chosen, e)
		}
		last = e.at
	}
	page.Links = make([]link.Link, 0, len(chosen))
	for n := range portions(len(chosen), rowsAtOnce) {
		if page.Links, err = w.take(t, chosen[:n], page.Links); err != nil {
			return link.Slice{}, err
		}
		chosen = chosen[n:]
	}
	return page, nil
}

// take appends the whole links of up to rowsAtOnce entries, but for those that have been
// deleted meanwhile, and for those that are damaged. It reads them in one statement: one for
// each costs more than a row. Where a page of the file is damaged each is read by itself.
func (w *listWalk) take(t *tx, chosen []listEntry, links []link.Link) ([]link.Link, error) {
	found := make([]link.Link, len(chosen))
	scan := func(row []driver.Value) error {
		n, l, err := scanLink(row)
		if isDamaged(err) {
			w.damages.met(l.Key, err)
			return nil
		}
		if i := slices.IndexFunc(chosen, func(e listEntry) bool { return e.n == n }); err == nil && i >= 0 {
			found[i] = l
		}
		return err
	}
	args := make([]any, len(chosen))
	for i := range chosen {
		args[i] = chosen[i].n
	}
	err := t.each(sqlLinksAt+groups(1, len(chosen)), scan, args...)
	if damaged(err) {
		err = nil
		for i := range chosen {
			if one := t.each(sqlLinkAt, scan, chosen[i].n); damaged(one) {
				w.damages.met(link.Key{}, chosen[i].unreadable(one))
			} else if one != nil {
				err = one
			}
		}
	}
	for i := range found {
		if !found[i].ID.IsZero() && found[i].Status != link.Deleted {
			links = append(links, found[i])
		}
	}
	return links, err
}

func (w *listWalk) matches(e listEntry) bool {
	return e.status != link.Deleted &&
		(w.filter.Status == 0 || e.status == w.filter.Status) &&
		(w.filter.Domain == nil || e.domain == *w.filter.Domain)
}

// next returns the entry that comes first in any lane.
func (w *listWalk) next(t *tx) (e listEntry, ok bool, err error) {
	var first *listLane
	for _, lane := range w.lanes {
		if err := w.fill(t, lane); err != nil {
			return listEntry{}, false, err
		}
		if len(lane.ahead) > 0 && (first == nil || w.before(lane.ahead[0].at, first.ahead[0].at)) {
			first = lane
		}
	}
	if first == nil {
		return listEntry{}, false, nil
	}
	e, first.ahead = first.ahead[0], first.ahead[1:]
	return e, true, nil
}

// before compares positions in the order of the walk; one id may be in several
// workspaces.
func (w *listWalk) before(a, b listPosition) bool {
	order := cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.workspace, b.workspace))
	if w.filter.Oldest {
		return order < 0
	}
	return order > 0
}
