package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"curt/internal/link"
)

// insertCounted inserts entries whose codes the permutation made, all or none. done is false when one
// of them is of another kind, or was refused: then each has to be decided by itself.
func (s *Links) insertCounted(ctx context.Context, pool *pgxpool.Pool, links []link.Link, entries []int) (done bool, err error) {
	for _, i := range entries {
		if links[i].CodeKind == link.Chosen {
			return false, nil
		}
	}
	args, _ := s.createArgs(links, s.ordered(links, entries))
	err = repeated(ctx, func() error { return s.sendCounted(ctx, pool, args) })
	if isData(err) {
		return false, nil
	}
	return err == nil, err
}

// ordered returns entries in the order of keys, so that two statements wait for each other
// in one direction only.
func (s *Links) ordered(links []link.Link, entries []int) []int {
	type placed struct {
		entry int
		place int64 // to find it costs more than to compare
	}
	all := make([]placed, len(entries))
	for n, i := range entries {
		all[n] = placed{i, s.place(links[i].Key.Code)}
	}
	slices.SortFunc(all, func(a, b placed) int {
		x, y := &links[a.entry].Key, &links[b.entry].Key
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(x.Domain, y.Domain), cmp.Compare(x.Code, y.Code))
	})
	sorted := make([]int, len(all))
	for n := range all {
		sorted[n] = all[n].entry
	}
	return sorted
}

// sendCounted sends the statement with the arguments that createArgs made.
func (s *Links) sendCounted(ctx context.Context, pool *pgxpool.Pool, args []any) error {
	c, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	_, err = c.Exec(ctx, sqlInsertCounted, append([]any{often(c.Conn())}, args...)...)
	return err
}
