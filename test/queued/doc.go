// Package queued proves CURT_WRITES=queued on the built binary, with Kafka, PostgreSQL and SQLite: a link that was
// answered 202 is there, once, whoever dies.
package queued
