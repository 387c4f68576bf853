package postgres_test

import (
	"io"
	"sync"
	"testing"

	"curt/internal/auth"
	"curt/internal/auth/authtest"
	"curt/internal/backend/coldsql"
	"curt/internal/backend/coldsql/coldjobs"
	"curt/internal/backend/coldsql/coldreviews"
	"curt/internal/backend/coldsql/coldsqltest"
	"curt/internal/backend/limitrows"
	"curt/internal/backend/postgres"
	"curt/internal/idempotency"
	"curt/internal/idempotency/idempotencytest"
	"curt/internal/job"
	"curt/internal/job/jobtest"
	"curt/internal/joblease"
	"curt/internal/joblease/jobleasetest"
	"curt/internal/moderation/moderationtest"
	"curt/internal/ratelimit"
	"curt/internal/ratelimit/ratelimittest"
)

// beside opens what is kept beside links, and remembers of which, for second handles.
type beside[S any] struct {
	d     *databases
	take  func(*postgres.Links) S
	links sync.Map // by store
}

func of[S any](d *databases, take func(*postgres.Links) S) *beside[S] {
	return &beside[S]{d: d, take: take}
}

func (b *beside[S]) on(l *postgres.Links) S {
	s := b.take(l)
	b.links.Store(s, l)
	return s
}

func (b *beside[S]) open(t testing.TB) S { return b.on(b.d.fresh(t)) }

func (b *beside[S]) again(t testing.TB, s S) S {
	l, _ := b.links.Load(s)
	return b.on(b.d.again(t, l))
}

func accountStores(t *testing.T, d *databases) {
	t.Run("accounts", func(t *testing.T) {
		coldsqltest.Run(t, func(t *testing.T) coldsql.Accounts { return d.fresh(t).Accounts().Accounts })
	})
	t.Run("limits", func(t *testing.T) {
		three := func(t *testing.T) (all [3]coldsql.DB) {
			l := d.fresh(t)
			for i := range all {
				all[i] = d.again(t, l).Accounts().Database()
			}
			return all
		}
		ratelimittest.Ledger(t, func(t *testing.T, kind string) [3]ratelimit.Ledger {
			db := three(t)
			return [3]ratelimit.Ledger{limitrows.NewLedger(db[0], kind, true), limitrows.NewLedger(db[1], kind, true), limitrows.NewLedger(db[2], kind, true)}
		})
		ratelimittest.Tally(t, func(t *testing.T) [2]ratelimit.Tally {
			db := three(t)
			return [2]ratelimit.Tally{limitrows.NewTally(db[0]), limitrows.NewTally(db[1])}
		})
	})
	t.Run("idempotency", func(t *testing.T) {
		b := of(d, func(l *postgres.Links) idempotency.Store { return l.Accounts().Idempotency() })
		idempotencytest.Run(t, idempotencytest.Harness{Open: b.open, Again: b.again})
	})
	t.Run("job leases", func(t *testing.T) {
		b := of(d, func(l *postgres.Links) joblease.Store { return l.Accounts().JobLeases() })
		jobleasetest.Run(t, func(t testing.TB) [2]joblease.Store {
			s := b.open(t)
			return [2]joblease.Store{s, b.again(t, s)}
		})
	})
	t.Run("jobs", func(t *testing.T) {
		jobtest.Run(t, func(t testing.TB, b job.Bounds) [2]job.Store {
			l := d.fresh(t)
			return [2]job.Store{coldjobs.New(l.Accounts().DB(), b), coldjobs.New(d.again(t, l).Accounts().DB(), b)}
		})
	})
	t.Run("keys", func(t *testing.T) {
		b := of(d, func(l *postgres.Links) auth.Store { return l.Accounts().Keys() })
		authtest.Run(t,
			func(t *testing.T) auth.Store { return b.open(t) },
			func(t *testing.T, s auth.Store) auth.Store { return b.again(t, s) })
	})
	t.Run("shares", func(t *testing.T) {
		b := of(d, func(l *postgres.Links) auth.ShareStore { return l.Accounts().Shares() })
		authtest.RunShares(t,
			func(t *testing.T) auth.ShareStore { return b.open(t) },
			func(t *testing.T, s auth.ShareStore) auth.ShareStore { return b.again(t, s) })
	})
	t.Run("journal", func(t *testing.T) {
		b := of(d, func(l *postgres.Links) moderationtest.Store { return l.Accounts().Journal() })
		moderationtest.Run(t, moderationtest.Harness{
			Open: func(t testing.TB) (moderationtest.Store, io.Closer) {
				l := d.fresh(t)
				return b.on(l), l
			},
			Again: b.again,
		})
	})
	t.Run("lists", func(t *testing.T) {
		type listing struct {
			coldsql.Journal
			coldsql.Lists
		}
		b := of(d, func(l *postgres.Links) moderationtest.Listing {
			return &listing{l.Accounts().Accounts.Journal(), l.Accounts().Lists()}
		})
		moderationtest.RunLists(t, moderationtest.ListsHarness{Open: b.open, Again: b.again})
	})
	t.Run("cases", func(t *testing.T) {
		b := of(d, func(l *postgres.Links) moderationtest.Queue {
			return moderationtest.Queue{Cases: coldreviews.NewCases(l.Accounts().DB()), Appeals: coldreviews.NewAppeals(l.Accounts().DB()), Destinations: coldreviews.NewDestinations(l.Accounts().DB())}
		})
		moderationtest.RunCases(t,
			func(t *testing.T) moderationtest.Queue { return b.open(t) },
			func(t *testing.T, q moderationtest.Queue) moderationtest.Queue { return b.again(t, q) })
	})
}
