package searchindex

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
	"curt/internal/search"
)

// findBudget bounds the pages and chunks that one Find reads, as far as it can: at
// 15 µs each, 500 take about 8 ms.
const findBudget = 500

// rangePages is how many look-ups of one term cost what a page of a range does.
const rangePages = 3

// Find implements search.Index. It goes through the segments in the order in which
// they begin, and opens one only when the walk has come there.
func (s *Index) Find(ctx context.Context, q search.Query, p search.Page) (search.Hits, error) {
	var hits search.Hits
	err := s.view(ctx, func(t *sqlitedb.Tx, state indexState) (err error) {
		w := &findWalk{t: t, query: q, page: p}
		w.choose(state.segments)
		hits, err = w.run(ctx)
		return err
	})
	if err != nil {
		return search.Hits{}, fmt.Errorf("search: %w", err)
	}
	return hits, nil
}

// findWalk merges segments, whose ids may overlap, by id.
type findWalk struct {
	t     *sqlitedb.Tx
	query search.Query
	page  search.Page
	ahead []*segment // not opened yet, by where they begin
	open  []*findLane
	spent int // pages and chunks read

	left, set docSet // of the segment at hand, used again
}

// findLane is the walk through one segment.
type findLane struct {
	segment *segment
	left    docSet // what matches and was not taken
	doc     int    // of head
	head    search.Hit
	chunk   []search.Hit
	at      int // number of chunk
}

// compare orders ids as the walk does.
func (w *findWalk) compare(a, b link.ID) int {
	if w.page.Oldest {
		return bytes.Compare(a[:], b[:])
	}
	return bytes.Compare(b[:], a[:])
}

// edges returns where the walk enters a segment and where it leaves it.
func (w *findWalk) edges(s *segment) (enter, leave link.ID) {
	if w.page.Oldest {
		return s.first(), s.last
	}
	return s.last, s.first()
}

func (w *findWalk) enter(s *segment) link.ID {
	id, _ := w.edges(s)
	return id
}

// choose leaves out the segments that end before the page begins.
func (w *findWalk) choose(all []*segment) {
	for _, s := range all {
		_, leave := w.edges(s)
		if w.page.From.IsZero() || w.compare(leave, w.page.From) >= 0 {
			w.ahead = append(w.ahead, s)
		}
	}
	slices.SortStableFunc(w.ahead, func(a, b *segment) int { return w.compare(w.enter(a), w.enter(b)) })
}

func (w *findWalk) run(ctx context.Context) (hits search.Hits, err error) {
	for {
		best := w.best()
		for len(w.ahead) > 0 && (best == nil || w.compare(w.enter(w.ahead[0]), best.head.ID) <= 0) {
			if ctx.Err() != nil {
				return hits, context.Cause(ctx)
			}
			if w.spent >= findBudget && w.onward(w.enter(w.ahead[0])) {
				hits.More, hits.Next = true, w.enter(w.ahead[0])
				return hits, nil
			}
			if err := w.enterNext(); err != nil {
				return hits, err
			}
			best = w.best()
		}
		switch {
		case best == nil:
			return hits, nil
		case len(hits.Found) == w.page.Limit:
			hits.More, hits.Next = true, best.head.ID
			return hits, nil
		}
		hits.Found = append(hits.Found, best.head)
		if err := w.advance(best); err != nil {
			return hits, err
		}
	}
}

// onward reports that a page which ends here has come further than where it began.
func (w *findWalk) onward(id link.ID) bool {
	return w.page.From.IsZero() || w.compare(w.page.From, id) < 0
}

// best returns the lane whose head comes first, nil when there is none.
func (w *findWalk) best() (best *findLane) {
	for _, l := range w.open {
		if best == nil || w.compare(l.head.ID, best.head.ID) < 0 {
			best = l
		}
	}
	return best
}

// enterNext evaluates the query on the next segment.
func (w *findWalk) enterNext() error {
	s := w.ahead[0]
	w.ahead = w.ahead[1:]
	w.spent++
	found, err := w.matching(s)
	if err != nil || !found {
		return err
	}
	l := &findLane{segment: s, left: w.left, at: -1}
	w.left = nil // the lane's from now on
	if err := w.skip(l); err != nil {
		return err
	}
	w.open = append(w.open, l)
	return w.seek(l, l.doc)
}

// matching fills left with the documents of a segment that match and reports whether
// there are any. The ranges that span the fewest pages are asked first, and when nothing
// is left the rest is not read.
func (w *findWalk) matching(s *segment) (found bool, err error) {
	w.left, w.set = sized(w.left, s.docs), sized(w.set, s.docs)
	for i, r := range byWidth(s, w.query.All) {
		if i == 0 {
			err = w.read(s, r, w.left)
		} else if err = w.read(s, r, w.set); err == nil {
			w.left.and(w.set)
		}
		if err != nil || w.left.empty() {
			return false, err
		}
	}
	if len(w.query.All) == 0 {
		w.left.fill(s.docs)
	}
	w.left.without(s.gone)
	for _, r := range byWidth(s, w.query.None) {
		if err := w.read(s, r, w.set); err != nil {
			return false, err
		}
		w.left.without(w.set)
	}
	return !w.left.empty(), nil
}

func (w *findWalk) read(s *segment, r search.Range, into docSet) error {
	first, end := s.pages(r)
	// Behind the first page come those of a long range, of which every term is read.
	w.spent += max(0, (end-first)*rangePages-rangePages+1)
	clear(into)
	return s.set(w.t, r, into)
}

// sized returns a set for so many documents, in old where it has room. What it holds is
// of no meaning.
func sized(old docSet, docs int) docSet {
	if n := (docs + 63) / 64; n <= cap(old) {
		return old[:n]
	}
	return newDocSet(docs)
}

func byWidth(s *segment, ranges []search.Range) []search.Range {
	width := func(r search.Range) int {
		first, end := s.pages(r)
		return end - first
	}
	return slices.SortedStableFunc(slices.Values(ranges), func(a, b search.Range) int { return cmp.Compare(width(a), width(b)) })
}

// skip finds where in the segment the page begins.
func (w *findWalk) skip(l *findLane) error {
	s := l.segment
	if !w.page.Oldest {
		l.doc = s.docs - 1
	}
	if w.page.From.IsZero() || w.compare(w.page.From, w.enter(s)) <= 0 {
		return nil
	}
	// The chunk that holds From, or would.
	at := max(0, sort.Search(len(s.ids), func(i int) bool { return bytes.Compare(s.ids[i][:], w.page.From[:]) > 0 })-1)
	if err := w.load(l, at); err != nil {
		return err
	}
	i, exact := slices.BinarySearchFunc(l.chunk, w.page.From, func(h search.Hit, id link.ID) int { return bytes.Compare(h.ID[:], id[:]) })
	l.doc = at*chunkDocs + i
	if !exact && !w.page.Oldest {
		l.doc--
	}
	return nil
}

func (w *findWalk) load(l *findLane, at int) (err error) {
	if l.at == at {
		return nil
	}
	w.spent++
	l.chunk, err = l.segment.chunk(w.t, at)
	l.at = at
	return err
}

// advance moves a lane to its next document.
func (w *findWalk) advance(l *findLane) error {
	if w.page.Oldest {
		return w.seek(l, l.doc+1)
	}
	return w.seek(l, l.doc-1)
}

// seek moves a lane to the first match from doc on; a lane without one is closed.
func (w *findWalk) seek(l *findLane, doc int) error {
	if w.page.Oldest {
		l.doc = l.left.next(doc)
	} else {
		l.doc = l.left.previous(doc)
	}
	if l.doc < 0 {
		w.open = slices.DeleteFunc(w.open, func(o *findLane) bool { return o == l })
		return nil
	}
	if err := w.load(l, l.doc/chunkDocs); err != nil {
		return err
	}
	l.head = l.chunk[l.doc%chunkDocs]
	return nil
}
