// Package coldreviews keeps what reviews are about, in tables beside the accounts of package coldsql: cases
// with their reports and notes, appeals, and the destinations of refused creates.
package coldreviews

import "curt/internal/backend/coldsql"

// NewCases returns the cases in a database of accounts.
func NewCases(db coldsql.DB) Cases { return Cases{db} }

// NewAppeals returns the appeals in a database of accounts.
func NewAppeals(db coldsql.DB) Appeals { return Appeals{db} }

// NewDestinations returns the destinations of refused creates in a database of accounts.
func NewDestinations(db coldsql.DB) Destinations { return Destinations{db} }

// Statements are those of requests, by name, for tests of their plans: each must find what it looks
// for by an index.
func Statements(d *coldsql.Dialect) map[string]string {
	return d.SQLs(map[string]string{
		"open case": sqlOpenCase, "case": sqlCase, "shown case": sqlShownCase, "closed case": sqlClosedCase,
		"taken case": sqlTakenCase, "later case": sqlLaterCase, "insert case": sqlInsertCase, "join case": sqlJoinCase, "close case": sqlCloseCase,
		"count case": sqlCountCase, "describe case": sqlDescribeCase, "move case": sqlMoveCase, "drop case": sqlDropCase,
		"insert note": sqlInsertNote, "drop notes": sqlDropNotes, "notes": sqlNotes,
		"networks": sqlNetworks, "add network": sqlAddNetwork, "drop networks": sqlDropNetworks,
		"position": sqlPosition, "move position": sqlMovePosition, "forget notes": sqlForgetNotes, "erase notes": sqlEraseNotes,
		"link appeal": sqlLinkAppeal, "token appeal": sqlTokenAppeal, "insert appeal": sqlInsertAppeal, "answer": sqlAnswer,
		"forget appeals": sqlForgetAppeals, "erase appeals": sqlEraseAppeals,
		"destination": sqlDestination, "known destination": sqlKnownDestination, "open of workspace": sqlOpenOfWorkspace, "open of network": sqlOpenOfNetwork,
		"refuse destination": sqlRefuseDestination, "decide destination": sqlDecideDestination, "expired destinations": sqlExpiredDestinations,
		"erase destination": sqlEraseDestination, "erase case host": sqlEraseCaseHost, "drop destination": sqlDropDestination, "drop cases": sqlDropCases, "drop appeals": sqlDropAppeals,
		"reopen destination": sqlReopenDestination, "same destination": sqlSameDestination, "decision of": sqlDecisionOf,
	})
}

// Lists are the statements of lists of cases, which PostgreSQL may sort for.
func Lists(d *coldsql.Dialect) map[string]string {
	return d.SQLs(map[string]string{
		"cases by due": casesBy(byDue), "cases by score": casesBy(byScore), "cases by reports": casesBy(byReports), "cases by newest": casesBy(byNewest),
		"count cases": sqlCountCases, "pending cases": sqlPendingCases,
	})
}
