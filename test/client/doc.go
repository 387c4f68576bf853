// Package client tests the Go client: each of its calls against a server that answers what
// the test wants, that it covers the API, and, by module_test.go, that a program elsewhere
// can require it. The tests are not beside it because the client is a module without
// dependencies, and they need some.
package client
