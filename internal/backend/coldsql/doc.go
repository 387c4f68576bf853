// Package coldsql keeps accounts in tables: API keys with their workspaces, shares, job leases,
// idempotency keys, the journal and the lists of moderation, and positions of followers. They are cold
// beside links, so one text of each statement serves every SQL database; a driver gives a [DB] and a
// [Dialect]. Jobs are in coldjobs, cases, appeals and refused destinations in coldreviews. Read db.go
// first. The tables are the driver's own, with its types.
//
// Every write checks what it needs, under a lock where the dialect has one, and leaves nothing
// behind when it returns an error: a DB undoes it.
//
// The package imports contracts, and no driver.
package coldsql
