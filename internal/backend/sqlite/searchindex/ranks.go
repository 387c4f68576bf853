package searchindex

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"

	"curt/internal/backend/sqlite/sqlitedb"
	"curt/internal/link"
	"curt/internal/search"
)

var _ search.Ranking = (*Index)(nil)

const (
	sqlRank = `INSERT INTO ranks (id, workspace, domain, code, clicks) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET clicks = excluded.clicks, workspace = excluded.workspace`
	sqlUnrank    = `DELETE FROM ranks WHERE id = ?`
	sqlSetRanked = `UPDATE ranked SET generation = ? WHERE one = 1`
)

// Rank implements search.Ranking.
func (s *Index) Rank(_ context.Context, ranks []search.Rank, generation uint64) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	err := s.commit(func(t *sqlitedb.Tx, state indexState) (indexState, error) {
		for i := range ranks {
			s.config.Yielder.Yield()
			var err error
			if r := &ranks[i]; r.Clicks == 0 {
				_, err = t.Exec(sqlUnrank, r.ID[:])
			} else {
				_, err = t.Exec(sqlRank, r.ID[:], string(r.Workspace), string(r.Key.Domain), string(r.Key.Code), clicksOf(r.Clicks))
			}
			if err != nil {
				return state, err
			}
		}
		if generation == 0 {
			return state, nil
		}
		_, err := t.Exec(sqlSetRanked, int64(generation))
		return state, err
	})
	if err != nil {
		return fmt.Errorf("rank links: %w", err)
	}
	return nil
}

func clicksOf(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

const sqlRanked = `SELECT generation FROM ranked WHERE one = 1`

// Generation implements search.Ranking.
func (s *Index) Generation(ctx context.Context) (uint64, error) {
	var n int64
	err := s.view(ctx, func(t *sqlitedb.Tx, _ indexState) (err error) {
		n, _, err = t.Number(sqlRanked)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the generation of ranks: %w", err)
	}
	return uint64(n), nil
}

const (
	sqlTopOf = `SELECT id, workspace, domain, code, clicks FROM ranks
		WHERE workspace = ? AND (clicks, id) <= (?, ?) ORDER BY clicks DESC, id DESC LIMIT ?`
	sqlTopOfAll = `SELECT id, workspace, domain, code, clicks FROM ranks
		WHERE (clicks, id) <= (?, ?) ORDER BY clicks DESC, id DESC LIMIT ?`
)

// Top implements search.Ranking.
func (s *Index) Top(ctx context.Context, w link.WorkspaceID, from search.RankPosition, n int) (top []search.Rank, err error) {
	query, args := sqlTopOfAll, []any{clicksOf(from.Clicks), from.ID[:], int64(n)}
	if w != "" {
		query, args = sqlTopOf, append([]any{string(w)}, args...)
	}
	err = s.view(ctx, func(t *sqlitedb.Tx, _ indexState) error {
		return t.Each(query, func(row []driver.Value) error {
			sc := sqlitedb.Scanner{Row: row}
			var r search.Rank
			copy(r.ID[:], sqlitedb.Next[[]byte](&sc))
			r.Workspace = link.WorkspaceID(sc.Text())
			r.Key = link.Key{Domain: link.Domain(sc.Text()), Code: link.Code(sc.Text())}
			r.Clicks = uint64(sc.Int())
			top = append(top, r)
			return sc.Damage()
		}, args...)
	})
	if err != nil {
		return nil, fmt.Errorf("read the most clicked links: %w", err)
	}
	return top, nil
}

const sqlRankClicks = `SELECT clicks FROM ranks WHERE id = ?`

// Clicks implements search.Ranking.
func (s *Index) Clicks(ctx context.Context, ids []link.ID) ([]uint64, error) {
	clicks := make([]uint64, len(ids))
	err := s.view(ctx, func(t *sqlitedb.Tx, _ indexState) error {
		for i, id := range ids {
			n, _, err := t.Number(sqlRankClicks, id[:])
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

// unrank removes links that are gone from the ranks.
func unrank(t *sqlitedb.Tx, gone []link.ID) error {
	for _, id := range gone {
		if _, err := t.Exec(sqlUnrank, id[:]); err != nil {
			return err
		}
	}
	return nil
}
