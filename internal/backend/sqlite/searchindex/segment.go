package searchindex

import (
	"bytes"
	"cmp"
	"database/sql/driver"
	"slices"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
	"curt/internal/search"
)

const (
	sqlSearchState = `SELECT after, changes, partitions, creates, filled FROM state WHERE one = 1`
	sqlSegments    = `SELECT n, place, docs, heads, ids, gone FROM segments ORDER BY place`
)

// loadState reads what memory keeps.
func loadState(t *sqlitedb.Tx) (state indexState, err error) {
	found, err := t.One(sqlSearchState, func(row []driver.Value) error {
		s := sqlitedb.Scanner{Row: row}
		copy(state.position.After[:], sqlitedb.Next[[]byte](&s))
		one, several := link.Sequence(s.Int()).Position(), link.Position(s.Text())
		state.position.Changes = cmp.Or(several, one)
		state.position.Creates, state.position.Filled = link.Position(s.Text()), s.Bool()
		return s.Damage()
	})
	if err == nil && !found {
		err = errPacked("no state")
	}
	if err != nil {
		return state, err
	}
	err = t.Each(sqlSegments, func(row []driver.Value) error {
		g, err := scanSegment(row)
		state.segments = append(state.segments, g)
		return err
	})
	return state, err
}

func scanSegment(row []driver.Value) (g *segment, err error) {
	s := sqlitedb.Scanner{Row: row}
	g = &segment{n: s.Int(), place: s.Int(), docs: int(s.Int())}
	heads, ids, gone := sqlitedb.Next[[]byte](&s), sqlitedb.Next[[]byte](&s), sqlitedb.Next[[]byte](&s)
	if s.Bad || g.docs < 1 || g.docs > maxSegmentDocs {
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

const sqlAddSegment = `INSERT INTO segments (n, place, docs, heads, ids, gone) VALUES (?, ?, ?, ?, ?, x'')`

// save writes the row of a segment, whose pages and chunks are written.
func (s *segment) save(t *sqlitedb.Tx) error {
	var ids []byte
	for _, id := range append(slices.Clone(s.ids), s.last) {
		ids = append(ids, id[:]...)
	}
	_, err := t.Exec(sqlAddSegment, s.n, s.place, int64(s.docs), packHeads(s.heads), withSum(ids))
	return err
}

const (
	sqlDropSegment = `DELETE FROM segments WHERE n = ?`
	sqlDropPages   = `DELETE FROM pages WHERE n BETWEEN ? AND ?`
	sqlDropChunks  = `DELETE FROM chunks WHERE n BETWEEN ? AND ?`
)

// drop deletes a segment from the file.
func (s *segment) drop(t *sqlitedb.Tx) error {
	if _, err := t.Exec(sqlDropSegment, s.n); err != nil {
		return err
	}
	for _, query := range []string{sqlDropPages, sqlDropChunks} {
		if _, err := t.Exec(query, s.row(0), s.row(1<<segmentShift-1)); err != nil {
			return err
		}
	}
	return nil
}

// row is the number of a page or a chunk of the segment.
func (s *segment) row(i int) int64 { return s.n<<segmentShift | int64(i) }

const sqlChunk = `SELECT data FROM chunks WHERE n = ?`

// chunk reads the documents of one chunk.
func (s *segment) chunk(t *sqlitedb.Tx, i int) (docs []search.Hit, err error) {
	found, err := t.One(sqlChunk, func(row []driver.Value) error {
		docs, err = unpackChunk(sqlitedb.Next[[]byte](&sqlitedb.Scanner{Row: row}))
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

const sqlPages = `SELECT data FROM pages WHERE n BETWEEN ? AND ? ORDER BY n`

// terms calls f with every term of the range, in order, until f is false.
func (s *segment) terms(t *sqlitedb.Tx, r search.Range, f func(term []byte, list postings) bool) error {
	first, end := s.pages(r)
	if first == end {
		return nil
	}
	seen := first
	err := t.Each(sqlPages, func(row []driver.Value) error {
		seen++
		data, err := checked(sqlitedb.Next[[]byte](&sqlitedb.Scanner{Row: row}))
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
func (s *segment) set(t *sqlitedb.Tx, r search.Range, into docSet) error {
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
