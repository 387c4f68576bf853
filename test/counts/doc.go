// Package counts proves, on the built binary, that several servers count into one database
// of statistics, each click once, whatever dies.
package counts
