package sqlite_test

import (
	"testing"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/coldsql/coldsqltest"
	"curt/internal/backend/limitrows"
	"curt/internal/ratelimit"
	"curt/internal/ratelimit/ratelimittest"
)

func TestAccounts(t *testing.T) {
	f := new(files)
	coldsqltest.Run(t, func(t *testing.T) coldsql.Accounts { return f.fresh(t).Accounts().Accounts })
}

func TestLimits(t *testing.T) {
	f := new(files)
	ratelimittest.Ledger(t, func(t *testing.T, kind string) [3]ratelimit.Ledger {
		db := f.fresh(t).Accounts().Database()
		return [3]ratelimit.Ledger{limitrows.NewLedger(db, kind, true), limitrows.NewLedger(db, kind, true), limitrows.NewLedger(db, kind, true)}
	})
	ratelimittest.Tally(t, func(t *testing.T) [2]ratelimit.Tally {
		db := f.fresh(t).Accounts().Database()
		return [2]ratelimit.Tally{limitrows.NewTally(db), limitrows.NewTally(db)}
	})
}
