// Package auth says who is calling and what they may do. A [Caller] is an
// argument of every operation, never a value in a context.
//
// Read caller.go for identity and rights, keys.go for how a request proves who
// it is, keyfile.go for the admin key that the first start makes. Doubles for
// tests are in authtest.
//
// The package refuses to store keys: it keeps their SHA-256 and compares in
// constant time. It imports link and the standard library.
package auth
