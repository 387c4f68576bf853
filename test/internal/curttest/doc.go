// Package curttest runs the built binary for the tests in test/: it builds curt
// once, starts it on a data folder and free ports, ends it gently or at once, and
// talks to it over plain sockets, so that a test sees the bytes that a visitor sees.
//
// Read server.go for a running curt, wire.go for one exchange, load.go for many
// clients at once. Files that end in _linux.go hold the means of the fault tests:
// file systems of their own, and system calls that fail.
//
// Nothing here knows curt's packages: what these tests prove, they prove about the
// program and its documented interface.
package curttest
