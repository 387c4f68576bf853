package link

import (
	"context"
	"errors"
	"fmt"
)

// maxUpdates bounds the rounds of Update. Every round that conflicts had another
// winner, so a caller that loses 100 times in a row meets something pathological.
const maxUpdates = 100

// Update reads the link, lets f change it and replaces it, again and again while
// others win. It is the one compare-and-swap loop above all drivers. An error of
// f ends it unchanged.
//
// When a Replace fails without a sentinel it may have happened: Update re-reads,
// and if the stored link is what f wanted one version up, that is success.
func Update(ctx context.Context, s Store, k Key, f func(*Link) error) (Link, error) {
	for range maxUpdates {
		l, err := s.Get(ctx, k)
		if err != nil {
			return Link{}, fmt.Errorf("update %s: %w", k, err)
		}
		if l.Status == Deleted {
			return Link{}, fmt.Errorf("update %s: deleted: %w", k, ErrNotFound)
		}
		if err := f(&l); err != nil {
			return Link{}, err
		}
		stored, err := s.Replace(ctx, l)
		if err == nil {
			return stored, nil
		}
		if !errors.Is(err, ErrConflict) {
			return Link{}, fmt.Errorf("update %s: %w", k, err)
		}
		if err := ctx.Err(); err != nil {
			return Link{}, fmt.Errorf("update %s: %w", k, context.Cause(ctx))
		}
	}
	return Link{}, fmt.Errorf("update %s: lost %d rounds: %w", k, maxUpdates, ErrConflict)
}
