package postgres

import (
	"context"
	"maps"

	"curt/internal/backend/coldsql"
	"curt/internal/backend/coldsql/coldjobs"
	"curt/internal/backend/coldsql/coldreviews"
	"curt/internal/backend/postgres/leases"
	"curt/internal/backend/postgres/linkrow"
	"curt/internal/backend/postgres/pgdb"
	"curt/internal/backend/postgres/reservations"
	"curt/internal/link"
)

// AskMany runs a query as a list does.
func (s *Links) AskMany(ctx context.Context, query string) error {
	return s.db.ReadMany(ctx, func(ctx context.Context, q pgdb.Querier) error {
		_, err := q.Exec(ctx, query)
		return err
	})
}

// CheckHealth does what Run does each second.
func (s *Links) CheckHealth(ctx context.Context) { s.db.CheckHealth(ctx) }

// LookAtReplicas does what Run does in a turn.
func (s *Links) LookAtReplicas(ctx context.Context) {
	if err := s.replicas.Turn(ctx, s.db.ReadPool); err != nil {
		panic(err)
	}
}

// Statements are those of requests and walks, by name: those that must find what they
// look for by an index.
func Statements() map[string]string {
	all := map[string]string{
		"target": linkrow.SQLTarget, "link": sqlLink, "links": sqlLinks, "links by id": sqlLinksByID, "taken": sqlTaken,
		"twins": sqlTwins, "expired": sqlExpired, "chosen": sqlChosen, "changes": sqlChanges, "events": sqlEvents, "append": sqlAppend, "creates": sqlCreates, "creates ended": sqlCreatesEnded, "head": sqlHead,
		"replace": sqlReplace, "spend": sqlSpend,
		"list oldest": sqlList(link.Filter{Oldest: true}), "list newest": sqlList(link.Filter{}),
		"list workspace oldest": sqlList(link.Filter{Workspace: "w", Oldest: true}), "list workspace newest": sqlList(link.Filter{Workspace: "w"}),
	}
	maps.Copy(all, leases.Statements())
	maps.Copy(all, reservations.Statements())
	d := coldsql.PostgreSQL()
	maps.Copy(all, d.Statements())
	maps.Copy(all, coldjobs.Statements(d))
	maps.Copy(all, coldreviews.Statements(d))
	all["pending cases"], all["bans"], all["verdicts"] = coldreviews.Lists(d)["pending cases"], d.Lists()["bans"], d.Lists()["verdicts"]
	return all
}

// Full reports whether each connection that the store may have is open.
func (s *Links) Full() bool {
	return s.db.ReadPool.Stat().TotalConns() == s.db.ReadPool.Stat().MaxConns() && s.db.WritePool.Stat().TotalConns() == s.db.WritePool.Stat().MaxConns()
}

// Trim shortens the change log.
func (s *Links) Trim(ctx context.Context) error { return s.trimChanges(ctx) }
