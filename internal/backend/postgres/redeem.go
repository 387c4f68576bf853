package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"curt/internal/backend/postgres/pgdb"
	"curt/internal/link"
)

// reservedOf parts the entries that met a reservation and nothing else from the others. taken and byID are what has
// the key and the id of each; reservations are removed from taken.
func reservedOf(taken, byID map[int]link.Link, entries []int) (reserved, others []int) {
	for _, i := range entries {
		other, met := taken[i]
		_, known := byID[i]
		if met = met && other.Version == 0; met {
			delete(taken, i)
		}
		if met && !known {
			reserved = append(reserved, i)
		} else {
			others = append(others, i)
		}
	}
	return reserved, others
}

// redeem creates entries that met a reservation that they may end, each with that in one transaction, and
// answers those that may not. left are those that are to be tried again.
func (s *creator) redeem(ctx context.Context, q pgdb.Querier, links []link.Link, entries []int, results []outcome) (left []int, err error) {
	var chosen []int
	for _, i := range entries {
		if links[i].CodeKind == link.Chosen {
			chosen = append(chosen, i)
		} else { // its strategy has others
			results[i] = outcome{err: link.ErrExists, done: true}
		}
	}
	if len(chosen) == 0 {
		return nil, nil
	}
	first, later := firsts(links, chosen)
	made := make([]outcome, len(links)) // valid once it is committed
	t, inTransaction := q.(pgx.Tx)
	if inTransaction {
		left, err = s.redeemIn(ctx, t, links, first, made)
	} else {
		err = pgdb.Retry(ctx, func() error {
			return pgx.BeginFunc(ctx, s.db.WritePool, func(t pgx.Tx) (err error) {
				clear(made)
				left, err = s.redeemIn(ctx, t, links, first, made)
				return err
			})
		})
	}
	if err != nil {
		return nil, err
	}
	for _, i := range first {
		if results[i] = made[i]; made[i].done && made[i].err == nil && !inTransaction {
			s.created(&links[i], &results[i])
		}
	}
	return merge(left, later), nil
}

// redeemIn is redeem of entries with a key of their own each, in one transaction.
func (s *creator) redeemIn(ctx context.Context, t pgx.Tx, links []link.Link, entries []int, results []outcome) (left []int, err error) {
	freed, held, err := s.reserved.End(ctx, t, links, entries)
	if err != nil {
		return nil, err
	}
	for _, i := range entries {
		if r, is := held[i]; is {
			results[i] = outcome{err: &link.HeldError{Reservation: r}, done: true}
		} else if !slices.Contains(freed, i) {
			left = append(left, i) // it is gone by now
		}
	}
	if len(freed) == 0 {
		return left, nil
	}
	lost, err := s.insert(ctx, t, links, freed, results)
	return merge(lost, left), err
}
