// Package cache keeps links in memory in front of the link store, so that a
// redirect costs no query, and keeps them honest: what was changed is never
// served again.
package cache
