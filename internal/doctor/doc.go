// Package doctor looks for what is wrong with an installation, and says what to do
// about it: settings, disk, permissions, databases, click log, statistics, leases of
// codes, clock, addresses.
//
// It reads, beside a running server or without one, and repairs nothing. It writes a
// file of a few bytes into the data folder, to time an fsync, and takes it away again.
// While it compares statistics with the click log it holds a view of clicks.db, which
// keeps that file's write-ahead log from being shortened.
//
// Read doctor.go for the order of the checks; each has its file.
package doctor
