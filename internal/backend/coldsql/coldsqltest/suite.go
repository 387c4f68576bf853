// Package coldsqltest proves databases under package coldsql: that accounts have one transaction
// over all their contracts. Each contract has a suite of its own.
package coldsqltest

import (
	"errors"
	"testing"
	"time"

	"curt/internal/auth"
	"curt/internal/backend/coldsql"
	"curt/internal/link"
	"curt/internal/moderation"
	"curt/internal/moderation/moderationtest"
)

// Run proves accounts that are empty.
func Run(t *testing.T, open func(t *testing.T) coldsql.Accounts) {
	k := auth.Key{ID: link.ID{1}, Workspace: "acme", Created: time.UnixMilli(1_700_000_000_000).UTC()}
	shared := link.Key{Code: "shared"}
	all := func(a coldsql.Accounts) error {
		if _, err := a.Keys().Create(t.Context(), k, "", auth.Sum{1}); err != nil {
			return err
		}
		if _, err := a.Shares().StoreOnce(t.Context(), shared, auth.ShareSecret{Workspace: "acme"}); err != nil {
			return err
		}
		_, err := a.Journal().Append(t.Context(), moderationtest.Decision(t, 1, link.Warn))
		return err
	}
	look := func(t *testing.T, a coldsql.Accounts) (errs [3]error) {
		t.Helper()
		_, errs[0] = a.Keys().Get(t.Context(), k.ID)
		_, errs[1] = a.Shares().Secret(t.Context(), shared)
		last, err := moderation.Verify(t.Context(), a.Journal(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if last.Sequence == 0 {
			errs[2] = moderation.ErrNotFound
		}
		return errs
	}
	t.Run("an error undoes what all contracts did", func(t *testing.T) {
		a, failed := open(t), errors.New("failed")
		err := a.Together(t.Context(), 3, func(within coldsql.Accounts) error {
			if err := all(within); err != nil {
				return err
			}
			if errs := look(t, within); errs != [3]error{} {
				t.Errorf("within the transaction: %v, want all of it there", errs)
			}
			return failed
		})
		if !errors.Is(err, failed) {
			t.Fatalf("%v, want %v", err, failed)
		}
		errs := look(t, a)
		for i, want := range []error{auth.ErrNoKey, auth.ErrNoShare, moderation.ErrNotFound} {
			if !errors.Is(errs[i], want) {
				t.Errorf("%v, want %v", errs[i], want)
			}
		}
	})
	t.Run("what all contracts did is there afterwards", func(t *testing.T) {
		a := open(t)
		if err := a.Together(t.Context(), 3, all); err != nil {
			t.Fatal(err)
		}
		if errs := look(t, a); errs != [3]error{} {
			t.Errorf("%v, want all of it there", errs)
		}
	})
}
