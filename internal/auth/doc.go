// Package auth says who is calling and what they may do. A [Principal] is an
// argument of every operation, never a value in a context.
//
// Read caller.go for identity and rights, keys.go for how a request proves who
// it is, store.go for what keeps keys, manage.go for how they are made and ended,
// keyfile.go for the admin key that the first start makes. Package authtest proves
// stores and holds doubles for tests.
//
// The package refuses to keep secrets: of a key it has the SHA-256, compared in
// constant time. It imports link and the standard library.
package auth
