// Package pgdb connects to PostgreSQL 15 or newer, brings its schema up to date, runs statements
// within limits, and says what their errors mean.
//
// Read database.go first, then pool.go for how it connects, query.go for statements, liveness.go for
// connections that died without a word, errors.go for what a failure means, and health.go for what is
// asked of the database once a second. The schema is migrations.
package pgdb
