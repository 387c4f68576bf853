// Package sqlitedb opens a file of SQLite, reads and writes it, and says what its errors mean.
//
// Read db.go for how a file is opened, conn.go for statements, store.go for a file that many
// write, writer.go for its group commit and what a failure means, faults.go for damage, and
// recover.go for how writes go on after it.
package sqlitedb
