package searchindex

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
	"curt/internal/search"
)

const sqlSearchMove = `UPDATE state SET after = ?, changes = ?, partitions = ?, creates = ?, filled = ? WHERE one = 1`

// Apply implements search.Index: the documents become new segments.
func (s *Index) Apply(ctx context.Context, b search.Batch) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	docs := slices.SortedFunc(slices.Values(b.Docs), func(x, y search.Document) int { return bytes.Compare(x.ID[:], y.ID[:]) })
	for i := range docs {
		if i > 0 && docs[i].ID == docs[i-1].ID {
			return fmt.Errorf("apply to the search index: duplicate %s", docs[i].ID)
		}
		for _, term := range docs[i].Terms {
			if len(term) > search.MaxTerm {
				return fmt.Errorf("apply to the search index: a term of %d bytes", len(term))
			}
		}
	}
	err := s.commit(func(t *sqlitedb.Tx, state indexState) (indexState, error) {
		state, err := markGone(ctx, t, state, docs, b.Gone)
		for part := range slices.Chunk(docs, s.config.SegmentDocs) {
			if err != nil {
				break
			}
			g := state.newSegment()
			if err = g.write(t, part); err == nil {
				state = state.with(nil, g)
			}
		}
		if err == nil {
			err = unrank(t, b.Gone)
		}
		if err != nil {
			return state, err
		}
		state.position = b.Position
		p := b.Position
		heads, err := p.Changes.Heads()
		if err != nil {
			return state, err
		}
		several := ""
		if len(heads) > 1 {
			several = string(p.Changes)
		}
		_, err = t.Exec(sqlSearchMove, p.After[:], int64(heads.At(0)), several, string(p.Creates), sqlitedb.Bit(p.Filled))
		return state, err
	})
	if err != nil {
		return fmt.Errorf("apply to the search index: %w", err)
	}
	return nil
}

// newSegment returns one with a number of its own, behind all others.
func (s indexState) newSegment() *segment {
	g := &segment{}
	for _, o := range s.segments {
		g.n, g.place = max(g.n, o.n), max(g.place, o.place)
	}
	g.n++
	g.place++
	return g
}

const sqlMarkGone = `UPDATE segments SET gone = ? WHERE n = ?`

// markGone marks what the batch replaces or removes.
func markGone(ctx context.Context, t *sqlitedb.Tx, state indexState, docs []search.Document, gone []link.ID) (indexState, error) {
	ids := slices.Clone(gone)
	for i := range docs {
		ids = append(ids, docs[i].ID)
	}
	slices.SortFunc(ids, func(a, b link.ID) int { return bytes.Compare(a[:], b[:]) })
	marks := map[*segment]docSet{}
	err := locate(ctx, t, state.segments, ids, func(s *segment, doc int, _ link.ID) {
		if marks[s] == nil {
			marks[s] = newDocSet(s.docs)
			copy(marks[s], s.gone)
		}
		marks[s].add(doc)
	})
	if err != nil {
		return state, err
	}
	state.segments = slices.Clone(state.segments)
	for i, s := range state.segments {
		if marks[s] == nil {
			continue
		}
		changed := *s // readers hold the other one
		changed.gone = marks[s]
		if _, err := t.Exec(sqlMarkGone, changed.gone.pack(), s.n); err != nil {
			return state, err
		}
		state.segments[i] = &changed
	}
	return state, nil
}

// locate calls f for each id, which come sorted, that a segment holds.
func locate(ctx context.Context, t *sqlitedb.Tx, segments []*segment, ids []link.ID, f func(s *segment, doc int, id link.ID)) error {
	for _, s := range segments {
		from, _ := slices.BinarySearchFunc(ids, s.first(), compareIDs)
		at, chunk := -1, []search.Hit(nil)
		for _, id := range ids[from:] {
			if compareIDs(id, s.last) > 0 {
				break
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if i := sort.Search(len(s.ids), func(i int) bool { return compareIDs(s.ids[i], id) > 0 }) - 1; i != at {
				var err error
				if chunk, err = s.chunk(t, i); err != nil {
					return err
				}
				at = i
			}
			i, found := slices.BinarySearchFunc(chunk, id, func(h search.Hit, id link.ID) int { return compareIDs(h.ID, id) })
			if doc := at*chunkDocs + i; found && !s.gone.has(doc) {
				f(s, doc, id)
			}
		}
	}
	return nil
}

func compareIDs(a, b link.ID) int { return bytes.Compare(a[:], b[:]) }

// write makes a segment of documents that are sorted by id.
func (s *segment) write(t *sqlitedb.Tx, docs []search.Document) error {
	lists := map[string][]int{}
	hits := make([]search.Hit, len(docs))
	for i := range docs {
		hits[i] = search.Hit{ID: docs[i].ID, Key: docs[i].Key}
		for _, term := range docs[i].Terms {
			lists[term] = append(lists[term], i)
		}
	}
	w := s.pageWriter(t, len(docs))
	terms := make([]string, 0, len(lists))
	for term := range lists {
		terms = append(terms, term)
	}
	slices.SortFunc(terms, strings.Compare)
	for _, term := range terms {
		if err := w.add([]byte(term), lists[term]); err != nil {
			return err
		}
	}
	return s.finish(t, w, slices.Chunk(hits, chunkDocs))
}

const sqlAddPage = `INSERT INTO pages (n, data) VALUES (?, ?)`

func (s *segment) pageWriter(t *sqlitedb.Tx, docs int) *pageWriter {
	s.docs = docs
	return &pageWriter{docs: docs, put: func(page int, data []byte) error {
		if page%32 == 31 {
			breathe()
		}
		_, err := t.Exec(sqlAddPage, s.row(page), data)
		return err
	}}
}

const sqlAddChunk = `INSERT INTO chunks (n, data) VALUES (?, ?)`

// finish writes what is left: the last page, the documents' names, the row.
func (s *segment) finish(t *sqlitedb.Tx, w *pageWriter, chunks func(func([]search.Hit) bool)) error {
	if err := w.flush(); err != nil {
		return err
	}
	s.heads = w.heads
	for chunk := range chunks {
		if _, err := t.Exec(sqlAddChunk, s.row(len(s.ids)), packChunk(chunk)); err != nil {
			return err
		}
		s.ids, s.last = append(s.ids, chunk[0].ID), chunk[len(chunk)-1].ID
	}
	return s.save(t)
}
