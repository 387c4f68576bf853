package postgres

import (
	"context"
	"errors"
	"fmt"
)

// sqlCluster asks for the number that initdb drew, which a server has in common with its
// standbys alone. Where the log ends tells nothing of that: two servers that were set up apart
// are both on their first timeline, and one of them is further.
const sqlCluster = `SELECT system_identifier FROM pg_control_system()`

// errForeign is said of a standby that has other links, or none.
var errForeign = errors.New("it is a standby of another primary than the one in CURT_LINKS: their system identifiers differ")

// clusterOf returns that number; 0 where this user may not ask for it.
func clusterOf(ctx context.Context, q querier) (number int64, err error) {
	err = q.QueryRow(ctx, sqlCluster).Scan(&number)
	if stateOf(err) == stateNoRight {
		return 0, nil
	}
	return number, err
}

// follows returns errForeign of a standby that is of another cluster than number; 0 = the
// primary does not say, and then any standby may be its own. So may one that does not say.
func follows(ctx context.Context, standby querier, number int64) error {
	if number == 0 {
		return nil
	}
	own, err := clusterOf(ctx, standby)
	if err == nil && own != 0 && own != number {
		err = errForeign
	}
	return err
}

// probeCluster looks whether a standby follows a primary. doubt is why that is not known.
func probeCluster(ctx context.Context, standby querier, primary string) (doubt string, err error) {
	pool, err := newPool(ctx, primary, 1)
	if err != nil {
		return "the primary does not answer", nil // CURT_LINKS is probed by itself
	}
	defer pool.Close()
	number, err := clusterOf(ctx, pool)
	if err == nil && number == 0 {
		return "the user of CURT_LINKS may not call pg_control_system()", nil
	}
	own, ownErr := clusterOf(ctx, standby)
	switch {
	case err != nil || ownErr != nil:
		return "", fmt.Errorf("ask for the system identifier: %w", errors.Join(err, ownErr))
	case own == 0:
		return "its user may not call pg_control_system()", nil
	case own != number:
		return "", errForeign
	}
	return "", nil
}
