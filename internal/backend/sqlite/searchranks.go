package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"

	"curt/internal/link"
	"curt/internal/search"
)

// Statements on the ranks of search.db.
const (
	sqlRank = `INSERT INTO ranks (id, workspace, domain, code, clicks) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET clicks = excluded.clicks, workspace = excluded.workspace`
	sqlUnrank     = `DELETE FROM ranks WHERE id = ?`
	sqlRanked     = `SELECT generation FROM ranked WHERE one = 1`
	sqlSetRanked  = `UPDATE ranked SET generation = ? WHERE one = 1`
	sqlRankClicks = `SELECT clicks FROM ranks WHERE id = ?`

	sqlTopOf = `SELECT id, workspace, domain, code, clicks FROM ranks
		WHERE workspace = ? AND (clicks, id) <= (?, ?) ORDER BY clicks DESC, id DESC LIMIT ?`
	sqlTopOfAll = `SELECT id, workspace, domain, code, clicks FROM ranks
		WHERE (clicks, id) <= (?, ?) ORDER BY clicks DESC, id DESC LIMIT ?`
)

var _ search.Ranking = (*Search)(nil)

// Rank implements search.Ranking.
func (s *Search) Rank(_ context.Context, ranks []search.Rank, generation uint64) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	err := s.commit(func(t *tx, state searchState) (searchState, error) {
		for i := range ranks {
			s.config.Rest()
			var err error
			if r := &ranks[i]; r.Clicks == 0 {
				_, err = t.exec(sqlUnrank, r.ID[:])
			} else {
				_, err = t.exec(sqlRank, r.ID[:], string(r.Workspace), string(r.Key.Domain), string(r.Key.Code), clicksOf(r.Clicks))
			}
			if err != nil {
				return state, err
			}
		}
		if generation == 0 {
			return state, nil
		}
		_, err := t.exec(sqlSetRanked, int64(generation))
		return state, err
	})
	if err != nil {
		return fmt.Errorf("rank links: %w", err)
	}
	return nil
}

func clicksOf(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

// Generation implements search.Ranking.
func (s *Search) Generation(ctx context.Context) (uint64, error) {
	var n int64
	err := s.view(ctx, func(t *tx, _ searchState) (err error) {
		n, _, err = t.number(sqlRanked)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the generation of ranks: %w", err)
	}
	return uint64(n), nil
}

// Top implements search.Ranking.
func (s *Search) Top(ctx context.Context, w link.WorkspaceID, from search.Place, n int) (top []search.Rank, err error) {
	query, args := sqlTopOfAll, []any{clicksOf(from.Clicks), from.ID[:], int64(n)}
	if w != "" {
		query, args = sqlTopOf, append([]any{string(w)}, args...)
	}
	err = s.view(ctx, func(t *tx, _ searchState) error {
		return t.each(query, func(row []driver.Value) error {
			sc := scanner{row: row}
			var r search.Rank
			copy(r.ID[:], next[[]byte](&sc))
			r.Workspace = link.WorkspaceID(sc.text())
			r.Key = link.Key{Domain: link.Domain(sc.text()), Code: link.Code(sc.text())}
			r.Clicks = uint64(sc.int())
			top = append(top, r)
			return sc.damage()
		}, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("read the most clicked links: %w", err)
	}
	return top, nil
}

// Clicks implements search.Ranking.
func (s *Search) Clicks(ctx context.Context, ids []link.ID) ([]uint64, error) {
	clicks := make([]uint64, len(ids))
	err := s.view(ctx, func(t *tx, _ searchState) error {
		for i, id := range ids {
			n, _, err := t.number(sqlRankClicks, id[:])
			if err != nil {
				return err
			}
			clicks[i] = uint64(n)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read clicks of links: %w", err)
	}
	return clicks, nil
}

// Statements on clicks.db for whoever ranks.
const (
	sqlClicked = `SELECT n, domain, code FROM links WHERE n > ? ORDER BY n LIMIT ?`
)

var _ search.Counts = (*Rollups)(nil)

// Counted implements search.Counts.
func (s *Rollups) Counted(ctx context.Context) (uint64, error) {
	state, err := s.Load(ctx)
	return state.Generation, err
}

// Count implements search.Counts.
func (s *Rollups) Count(ctx context.Context, keys []link.Key) ([]uint64, error) {
	totals, _, err := s.Totals(ctx, keys)
	clicks := make([]uint64, len(totals))
	for i := range totals {
		clicks[i] = totals[i].Clicks
	}
	return clicks, err
}

// Clicked implements search.Counts.
func (s *Rollups) Clicked(ctx context.Context, after int64, n int) (keys []link.Key, last int64, err error) {
	err = s.view(ctx, func(t *tx) error {
		return t.each(sqlClicked, func(row []driver.Value) error {
			sc := scanner{row: row}
			last = sc.int()
			keys = append(keys, link.Key{Domain: link.Domain(sc.text()), Code: link.Code(sc.text())})
			return sc.damage()
		}, after, int64(n))
	})
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("walk clicked links: %w", err)
	case len(keys) < n:
		return keys, 0, nil
	}
	return keys, last, nil
}

// unrank removes links that are gone from the ranks.
func unrank(t *tx, gone []link.ID) error {
	for _, id := range gone {
		if _, err := t.exec(sqlUnrank, id[:]); err != nil {
			return err
		}
	}
	return nil
}
