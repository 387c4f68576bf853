// Package sqlite keeps links in curt.db: the embedded default, durable on one machine without
// a server. curt.db, clicks.db (package counts) and search.db (package searchindex) never wait for
// each other.
//
// Read links.go first, then create.go, change.go and read.go for the operations; changelog.go and
// creates.go are what others follow. Below it lie sqlitedb, which opens a file and commits the writes
// of many callers with one fsync, linkrow, a link's row and its checksums, linklist, pages of links,
// leases, ids and keys that are given away once, and accounts. snapshot reads a file beside the
// process that writes it. The schema is migrations/links.
package sqlite
