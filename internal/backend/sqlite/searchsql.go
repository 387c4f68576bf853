package sqlite

import (
	"bytes"
	"database/sql/driver"
	"slices"

	"curt/internal/link"
	"curt/internal/search"
)

// Statements on search.db.
const (
	sqlSearchTouch = `SELECT one FROM state WHERE one = 1`
	sqlSearchState = `SELECT after, changes, creates, filled FROM state WHERE one = 1`
	sqlSearchMove  = `UPDATE state SET after = ?, changes = ?, creates = ?, filled = ? WHERE one = 1`

	sqlSegments    = `SELECT n, place, docs, heads, ids, gone FROM segments ORDER BY place`
	sqlAddSegment  = `INSERT INTO segments (n, place, docs, heads, ids, gone) VALUES (?, ?, ?, ?, ?, x'')`
	sqlMarkGone    = `UPDATE segments SET gone = ? WHERE n = ?`
	sqlDropSegment = `DELETE FROM segments WHERE n = ?`

	sqlPages     = `SELECT data FROM pages WHERE n BETWEEN ? AND ? ORDER BY n`
	sqlAddPage   = `INSERT INTO pages (n, data) VALUES (?, ?)`
	sqlDropPages = `DELETE FROM pages WHERE n BETWEEN ? AND ?`

	sqlChunk      = `SELECT data FROM chunks WHERE n = ?`
	sqlAddChunk   = `INSERT INTO chunks (n, data) VALUES (?, ?)`
	sqlDropChunks = `DELETE FROM chunks WHERE n BETWEEN ? AND ?`
)

// loadSearch reads what memory keeps.
func loadSearch(t *tx) (state searchState, err error) {
	found, err := t.one(sqlSearchState, func(row []driver.Value) error {
		s := scanner{row: row}
		copy(state.position.After[:], next[[]byte](&s))
		state.position.Changes, state.position.Creates, state.position.Filled = link.Sequence(s.int()), link.Position(s.text()), s.bool()
		return s.damage()
	})
	if err == nil && !found {
		err = errPacked("no state")
	}
	if err != nil {
		return state, err
	}
	err = t.each(sqlSegments, func(row []driver.Value) error {
		g, err := scanSegment(row)
		state.segments = append(state.segments, g)
		return err
	})
	return state, err
}

func scanSegment(row []driver.Value) (g *segment, err error) {
	s := scanner{row: row}
	g = &segment{n: s.int(), place: s.int(), docs: int(s.int())}
	heads, ids, gone := next[[]byte](&s), next[[]byte](&s), next[[]byte](&s)
	if s.bad || g.docs < 1 || g.docs > maxSegmentDocs {
		return nil, errPacked("segment")
	}
	if g.heads, err = unpackHeads(heads); err != nil {
		return nil, err
	}
	if ids, err = checked(ids); err != nil {
		return nil, err
	}
	for id := range slices.Chunk(ids, len(g.last)) {
		copy(g.last[:], id)
		g.ids = append(g.ids, g.last)
	}
	g.ids = g.ids[:max(0, len(g.ids)-1)]
	var ok bool
	if g.gone, ok = unpackDocSet(gone, g.docs); !ok || len(g.heads) == 0 || len(g.ids) != (g.docs+chunkDocs-1)/chunkDocs {
		return nil, errPacked("segment")
	}
	return g, nil
}

// save writes the row of a segment, whose pages and chunks are written.
func (s *segment) save(t *tx) error {
	var ids []byte
	for _, id := range append(slices.Clone(s.ids), s.last) {
		ids = append(ids, id[:]...)
	}
	_, err := t.exec(sqlAddSegment, s.n, s.place, int64(s.docs), packHeads(s.heads), withSum(ids))
	return err
}

// drop deletes a segment from the file.
func (s *segment) drop(t *tx) error {
	if _, err := t.exec(sqlDropSegment, s.n); err != nil {
		return err
	}
	for _, query := range []string{sqlDropPages, sqlDropChunks} {
		if _, err := t.exec(query, s.row(0), s.row(1<<segmentShift-1)); err != nil {
			return err
		}
	}
	return nil
}

// row is the number of a page or a chunk of the segment.
func (s *segment) row(i int) int64 { return s.n<<segmentShift | int64(i) }

// chunk reads the documents of one chunk.
func (s *segment) chunk(t *tx, i int) (docs []search.Hit, err error) {
	found, err := t.one(sqlChunk, func(row []driver.Value) error {
		docs, err = unpackChunk(next[[]byte](&scanner{row: row}))
		return err
	}, s.row(i))
	if err == nil && (!found || len(docs) != min(chunkDocs, s.docs-i*chunkDocs)) {
		err = errPacked("chunk")
	}
	return docs, err
}

// pages returns the pages that may hold terms of a range: from first up to, without, end.
func (s *segment) pages(r search.Range) (first, end int) {
	first, exact := slices.BinarySearch(s.heads, r.From)
	if !exact && first > 0 {
		first--
	}
	end = len(s.heads)
	if r.To != "" {
		end, _ = slices.BinarySearch(s.heads, r.To)
	}
	return first, max(first, end)
}

// terms calls f with every term of the range, in order, until f is false.
func (s *segment) terms(t *tx, r search.Range, f func(term []byte, list postings) bool) error {
	first, end := s.pages(r)
	if first == end {
		return nil
	}
	seen := first
	err := t.each(sqlPages, func(row []driver.Value) error {
		seen++
		data, err := checked(next[[]byte](&scanner{row: row}))
		if err != nil {
			return err
		}
		p := pageReader{data: data}
		for {
			switch ok, err := p.next(); {
			case err != nil || !ok:
				return err
			case r.To != "" && bytes.Compare(p.term, []byte(r.To)) >= 0:
				return nil
			case bytes.Compare(p.term, []byte(r.From)) >= 0 && !f(p.term, p.list):
				return nil
			}
		}
	}, s.row(first), s.row(end-1))
	if err == nil && seen != end {
		err = errPacked("missing pages")
	}
	return err
}

// set adds the documents that have a term of the range.
func (s *segment) set(t *tx, r search.Range, into docSet) error {
	sound := true
	err := s.terms(t, r, func(_ []byte, list postings) bool {
		sound = list.addTo(into, s.docs)
		return sound
	})
	if err == nil && !sound {
		err = errPacked("documents")
	}
	return err
}
