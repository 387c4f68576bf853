// Package coldcopy copies the tables of accounts and moderation from curt.db to PostgreSQL, again
// and again, each time what has changed, and compares both. Read tables.go first: it has every table
// and column, and what is left out; then copy.go.
//
// Rows are compared by digests of their values, not by their bytes, which the databases choose. It
// needs no log of changes: a row that differs from what the database is known to have is written,
// one that is gone is deleted.
package coldcopy
