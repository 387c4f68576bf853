// Package postgres keeps links in PostgreSQL 15 or newer, where several processes share
// them and a standby keeps a copy.
//
// Statements are our own and columns are named. Creates of many callers are joined into
// one statement; everything else is one statement too, or a transaction that ends with
// the call, so that a pooler in transaction mode may stand between.
//
// Read links.go for what the store promises, pool.go for how it connects,
// migrations/00001_links.sql for the shape of the data, create.go for how creates meet
// each other, change.go for the change log, errors.go for what a failure means.
package postgres
