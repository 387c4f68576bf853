// Package load sends HTTP/1.1 requests over keep-alive connections and measures
// the answers. It is one thread with one epoll set, because generator and server
// share two cores: a request costs it a write, a read and a share of a wait, about
// a third of what a client with a goroutine for each connection takes.
//
// A connection has one request on the way at most: nothing is pipelined or
// batched. A stream is either a closed loop (each connection sends its next
// request when the last is answered: for throughput) or an open loop (requests
// arrive when a Poisson process says so, whether or not earlier ones were
// answered: for latency). An open loop's latency runs from the moment when the
// request should have been sent, so a server that stops for 100 ms is seen by
// every request of these 100 ms, also those that were waiting for a connection.
//
// Read plan.go, then engine.go. Linux 5.11 or newer, for epoll_pwait2.
package load
