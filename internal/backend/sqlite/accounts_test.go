package sqlite_test

import (
	"testing"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/coldsql/coldsqltest"
)

func TestAccounts(t *testing.T) {
	f := new(files)
	coldsqltest.Run(t, func(t *testing.T) coldsql.Accounts { return f.fresh(t).Accounts().Accounts })
}
