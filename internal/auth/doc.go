// Package auth says who is calling and what they may do. A [Caller] is an
// argument of every operation, never a value in a context.
package auth
