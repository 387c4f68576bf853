// Package sqlite keeps links in curt.db and roll-ups in clicks.db: the embedded
// default, durable on one machine without a server.
//
// The two files never wait for each other. curt.db is written by one connection
// with synchronous=FULL and group commit (writer.go); clicks.db is written by the
// fold with synchronous=NORMAL, because its log position makes a lost tail harmless.
//
// Read db.go for how a file is opened; links.go for what curt.db promises, writer.go
// for its group commit and what a failure means, migrations/links for its shape,
// linkread.go and linkwrite.go for its operations; rollups.go for clicks.db; snapshot.go
// for reading a file beside the process that writes it.
package sqlite
