package postgres

import (
	"context"
	"maps"
	"net"

	"curt/internal/backend/coldsql"
	"curt/internal/link"
)

// Listen asks what the other writers have counted, as Run does each second.
func (s *Rollups) Listen(ctx context.Context) { s.listen(ctx) }

// AskMany runs a query as a list does.
func (s *Links) AskMany(ctx context.Context, query string) error {
	return s.readingMany(ctx, func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, query)
		return err
	})
}

// Look does what Run does each second.
func (s *Links) Look(ctx context.Context) { s.look(ctx) }

// LookAtReplicas does what Run does in a turn.
func (s *Links) LookAtReplicas(ctx context.Context) {
	m, err := s.replicas.mark(ctx, s.read)
	if err != nil {
		panic(err)
	}
	s.replicas.look(ctx, []mark{m})
}

// RollupStatements are those of roll-ups.
func RollupStatements() map[string]string {
	return map[string]string{
		"lock totals": sqlLockTotals, "add totals": sqlAddTotals, "click totals": sqlClickTotals, "click total": sqlClickTotal,
		"clicked": sqlClicked, "rollups": sqlRollupRows, "visitors": sqlRollupVisitors, "sums": sqlRollupSums, "writer": sqlWriter,
	}
}

// Statements are those of requests and walks, by name: those that must find what they
// look for by an index.
func Statements() map[string]string {
	all := map[string]string{
		"target": sqlTarget, "link": sqlLink, "links": sqlLinks, "links by id": sqlLinksByID, "taken": sqlTaken,
		"twins": sqlTwins, "expired": sqlExpired, "chosen": sqlChosen, "changes": sqlChanges, "events": sqlEvents, "append": sqlAppend, "creates": sqlCreates, "head": sqlHead,
		"replace": sqlReplace, "spend": sqlSpend, "newest counted": sqlNewestCounted,
		"list oldest": sqlList(link.Filter{Oldest: true}), "list newest": sqlList(link.Filter{}),
		"list workspace oldest": sqlList(link.Filter{Workspace: "w", Oldest: true}), "list workspace newest": sqlList(link.Filter{Workspace: "w"}),
	}
	d := coldsql.PostgreSQL()
	maps.Copy(all, d.Statements())
	all["pending cases"], all["bans"] = d.Lists()["pending cases"], d.Lists()["bans"]
	return all
}

// Full reports whether each connection that the store may have is open.
func (s *Links) Full() bool {
	return s.read.Stat().TotalConns() == s.read.Stat().MaxConns() && s.write.Stat().TotalConns() == s.write.Stat().MaxConns()
}

// Dial connects as pools do.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return dial(ctx, network, address)
}

// Trim shortens the change log.
func (s *Links) Trim(ctx context.Context) error { return s.trimChanges(ctx) }
