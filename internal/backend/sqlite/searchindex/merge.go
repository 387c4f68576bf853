package searchindex

import (
	"bytes"
	"context"
	"database/sql/driver"
	"fmt"
	"slices"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/search"
)

// mergeWidth is how many segments of one size become one of the next. Each document
// is written again at each of four sizes, and a question meets at most seven
// segments of each size beside the biggest ones.
const mergeWidth = 8

// Tidy implements search.Index: it merges one group of segments, or, to purge, writes
// one segment anew without what is gone.
func (s *Index) Tidy(ctx context.Context, purge bool) (more bool, err error) {
	s.applying.Lock()
	defer s.applying.Unlock()
	err = s.commit(func(t *sqlitedb.Tx, state indexState) (indexState, error) {
		group := s.group(state.segments, purge)
		if len(group) == 0 {
			return state, nil
		}
		more = true
		return merge(ctx, t, state, group)
	})
	if err != nil {
		return false, fmt.Errorf("merge the search index: %w", err)
	}
	return more, nil
}

// size is the class of a segment, by how many documents it still has.
func (s *Index) size(g *segment) int {
	live, class := g.live(), 0
	for most := s.config.SegmentDocs / mergeWidth / mergeWidth / mergeWidth; class < 3 && live > most; most *= mergeWidth {
		class++
	}
	return class
}

// group returns neighbours that are to become one segment; none = all is well.
func (s *Index) group(all []*segment, purge bool) []*segment {
	for _, g := range all {
		// Half empty ones cost questions for nothing.
		if gone := g.docs - g.live(); gone > 0 && (purge || 2*gone >= g.docs) {
			return []*segment{g}
		}
	}
	for class := range 4 {
		end := len(all)
		for end > 0 {
			begin := end
			for begin > 0 && s.size(all[begin-1]) <= class {
				begin--
			}
			if group := s.fitting(all[begin:end], class); len(group) > 1 {
				return group
			}
			end = min(begin, end-1)
		}
	}
	return nil
}

// fitting returns the oldest of the neighbours that fit into one segment and are worth
// it: mergeWidth, or as many as fill half of it, and no big one that is written again
// for the sake of a few documents.
func (s *Index) fitting(run []*segment, class int) []*segment {
	if least := mergeWidth; class < 3 && len(run) < least {
		return nil
	}
	for begin := range run {
		docs, most, end := 0, 0, begin
		for end < len(run) && docs+run[end].live() <= s.config.SegmentDocs {
			docs += run[end].live()
			most = max(most, run[end].live())
			end++
		}
		if mergeWidth*(docs-most) < docs {
			continue
		}
		if end-begin >= mergeWidth || end-begin > 1 && 2*docs > s.config.SegmentDocs {
			return run[begin:end]
		}
	}
	return nil
}

// merge replaces a group of segments by one in the place of the newest; by none
// when nothing is left of them.
func merge(ctx context.Context, t *sqlitedb.Tx, state indexState, group []*segment) (indexState, error) {
	m := merger{ctx: ctx, t: t, group: group}
	if err := m.readNames(); err != nil {
		return state, err
	}
	merged := state.newSegment()
	merged.place = group[len(group)-1].place
	if len(m.names) > 0 {
		if err := m.write(merged); err != nil {
			return state, err
		}
	}
	remove := map[int64]bool{}
	for _, g := range group {
		remove[g.n] = true
		if err := g.drop(t); err != nil {
			return state, err
		}
	}
	if len(m.names) == 0 {
		return state.with(remove), nil
	}
	return state.with(remove, merged), nil
}

// merger joins the documents and dictionaries of some segments.
type merger struct {
	ctx   context.Context //nolint:containedctx // of the one call that it lives for
	t     *sqlitedb.Tx
	group []*segment
	names []mergedName
	moved [][]int // per segment, its documents' new numbers; -1 = gone
}

type mergedName struct {
	search.Hit

	segment, doc int
}

// readNames reads which documents stay, and numbers them by their ids.
func (m *merger) readNames() error {
	for i, g := range m.group {
		m.moved = append(m.moved, slices.Repeat([]int{-1}, g.docs))
		for at := range g.ids {
			chunk, err := g.chunk(m.t, at)
			if err != nil {
				return err
			}
			for j, hit := range chunk {
				if doc := at*chunkDocs + j; !g.gone.has(doc) {
					m.names = append(m.names, mergedName{hit, i, doc})
				}
			}
		}
	}
	slices.SortFunc(m.names, func(a, b mergedName) int { return compareIDs(a.ID, b.ID) })
	for i, name := range m.names {
		m.moved[name.segment][name.doc] = i
	}
	return nil
}

func (m *merger) write(to *segment) error {
	w := to.pageWriter(m.t, len(m.names))
	var readers []*termReader
	for i, g := range m.group {
		r := &termReader{m: m, segment: g, moved: m.moved[i]}
		if err := r.next(); err != nil {
			return err
		}
		readers = append(readers, r)
	}
	var term []byte
	var list []int
	for {
		first := least(readers)
		if first == nil {
			break
		}
		term, list = append(term[:0], first.page.term...), list[:0]
		for _, r := range readers {
			if r.end || !bytes.Equal(r.page.term, term) {
				continue
			}
			if !r.page.list.each(r.segment.docs, func(doc int) {
				if now := r.moved[doc]; now >= 0 {
					list = append(list, now)
				}
			}) {
				return errPacked("documents")
			}
			if err := r.next(); err != nil {
				return err
			}
		}
		if len(list) == 0 {
			continue
		}
		slices.Sort(list)
		if err := w.add(term, list); err != nil {
			return err
		}
	}
	return to.finish(m.t, w, m.chunks())
}

// chunks yields the names of the merged segment.
func (m *merger) chunks() func(func([]search.Hit) bool) {
	return func(yield func([]search.Hit) bool) {
		hits := make([]search.Hit, 0, chunkDocs)
		for part := range slices.Chunk(m.names, chunkDocs) {
			hits = hits[:0]
			for _, name := range part {
				hits = append(hits, name.Hit)
			}
			if !yield(hits) {
				return
			}
		}
	}
}

// least returns the reader whose term comes first; nil at the end of all.
func least(readers []*termReader) (first *termReader) {
	for _, r := range readers {
		if !r.end && (first == nil || bytes.Compare(r.page.term, first.page.term) < 0) {
			first = r
		}
	}
	return first
}

// termReader walks all terms of a segment.
type termReader struct {
	m       *merger
	segment *segment
	moved   []int
	number  int // of the next page
	page    pageReader
	end     bool
}

func (r *termReader) next() error {
	for {
		ok, err := r.page.next()
		if ok || err != nil {
			return err
		}
		if r.number == len(r.segment.heads) {
			r.end = true
			return nil
		}
		if r.m.ctx.Err() != nil {
			return context.Cause(r.m.ctx)
		}
		n := r.segment.row(r.number)
		found, err := r.m.t.One(sqlPages, func(row []driver.Value) error {
			data, err := checked(sqlitedb.Next[[]byte](&sqlitedb.Scanner{Row: row}))
			r.page = pageReader{data: bytes.Clone(data), term: r.page.term[:0]}
			return err
		}, n, n)
		if err == nil && !found {
			err = errPacked("missing pages")
		}
		if err != nil {
			return err
		}
		r.number++
	}
}
