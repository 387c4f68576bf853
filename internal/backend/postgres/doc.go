// Package postgres keeps links in PostgreSQL, where several processes share them and a standby keeps
// a copy.
//
// Statements are our own and columns are named. Creates of many callers are joined into
// one statement; everything else is one statement too, or a transaction that ends with
// the call, so that a pooler in transaction mode may stand between.
//
// Read links.go for what the store promises, create.go for how creates meet each other, change.go and
// read.go for the other operations, changelog.go and creates.go for what others follow, uncertain.go
// for writes whose end is not known. Below it lie pgdb, the database itself, linkrow, a link's row,
// replicas, leases and accounts; package counts keeps roll-ups.
package postgres
