// Package http holds scripts that tell the HTTP interface by example, one file
// for each topic, and runs them against the built binary over plain sockets.
// The format is described in package script.
package http
