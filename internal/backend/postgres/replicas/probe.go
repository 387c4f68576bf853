package replicas

import (
	"context"
	"errors"
	"fmt"

	"curt/internal/backend/postgres/pgdb"
)

// Probe connects to a standby as OpenLinks does to a replica, changes nothing, and says
// what is there. What is no standby is an error, and so is one of another cluster than the
// primary that a second URL names. Where a user may not ask for that, or the primary does not
// answer, the standby is accepted, and what is said has the doubt.
func Probe(ctx context.Context, url, primary string) (string, error) {
	pool, err := pgdb.NewLazyPool(url, 1)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*pgdb.ConnectLimit)
	defer cancel()
	if _, _, err := replayed(ctx, pool); err != nil {
		return "", fmt.Errorf("query the standby: %w", err)
	}
	var version string
	if err := pool.QueryRow(ctx, `SELECT current_setting('server_version')`).Scan(&version); err != nil {
		return "", fmt.Errorf("read the version: %w", err)
	}
	doubt, err := probeCluster(ctx, pool, primary)
	if err != nil {
		return "", err
	}
	if doubt != "" {
		doubt = "; unknown whether it follows the primary in CURT_LINKS: " + doubt
	}
	return "standby available, PostgreSQL " + version + doubt, nil
}

// sqlCluster asks for the number that initdb drew, which a server has in common with its
// standbys alone. Where the log ends tells nothing of that: two servers that were set up apart
// are both on their first timeline, and one of them is further.
const sqlCluster = `SELECT system_identifier FROM pg_control_system()`

// errForeign is said of a standby that has other links, or none.
var errForeign = errors.New("standby of another primary than CURT_LINKS: the system identifiers differ")

// clusterOf returns that number; 0 where this user may not ask for it.
func clusterOf(ctx context.Context, q pgdb.Querier) (number int64, err error) {
	err = q.QueryRow(ctx, sqlCluster).Scan(&number)
	if pgdb.StateOf(err) == pgdb.StateNoRight {
		return 0, nil
	}
	return number, err
}

// follows returns errForeign of a standby that is of another cluster than number; 0 = the
// primary does not say, and then any standby may be its own. So may one that does not say.
func follows(ctx context.Context, standby pgdb.Querier, number int64) error {
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
func probeCluster(ctx context.Context, standby pgdb.Querier, primary string) (doubt string, err error) {
	pool, err := pgdb.NewPool(ctx, primary, 1)
	if err != nil {
		return "the primary is unavailable", nil // CURT_LINKS is probed by itself
	}
	defer pool.Close()
	number, err := clusterOf(ctx, pool)
	if err == nil && number == 0 {
		return "the user of CURT_LINKS lacks the right to call pg_control_system()", nil
	}
	own, ownErr := clusterOf(ctx, standby)
	switch {
	case err != nil || ownErr != nil:
		return "", fmt.Errorf("read the system identifier: %w", errors.Join(err, ownErr))
	case own == 0:
		return "its user lacks the right to call pg_control_system()", nil
	case own != number:
		return "", errForeign
	}
	return "", nil
}
