// Package counts proves, on the built binary, that several servers count into one database
// of statistics, each click once, whatever dies, and that one with a single processor does.
package counts
