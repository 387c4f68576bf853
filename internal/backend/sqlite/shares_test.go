package sqlite_test

import (
	"testing"

	"curt/internal/auth"
	"curt/internal/auth/authtest"
	"curt/internal/backend/sqlite"
)

func TestShares(t *testing.T) {
	f, stores := new(files), map[auth.ShareStore]*sqlite.Links{}
	authtest.RunShares(t,
		func(t *testing.T) auth.ShareStore {
			s := f.fresh(t)
			stores[s.Accounts().Shares()] = s
			return s.Accounts().Shares()
		},
		func(t *testing.T, s auth.ShareStore) auth.ShareStore {
			return f.again(t, stores[s]).Accounts().Shares()
		})
}
