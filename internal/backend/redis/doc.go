// Package redis is what several processes share besides the link store: a cache of links
// ([Client] is a cache.Shared), a bus of changes (a cache.Bus) and the numbers behind rate
// limits ([Limiter] is a ratelimit.Store, [Ledger] a ratelimit.Ledger and Tally), on one Redis server, on one that Sentinel
// watches, or on a Cluster. Redis 7 or newer; RESP3 by rueidis.
//
// Nothing lives here alone. A server that is away, slow, full, or has forgotten everything
// costs time and questions to the link store, never an answer: every call has a deadline in
// milliseconds, and where all fail for a while, a breaker spares the next ones even that.
// What the server brings back from a past that it should have left (a fail-over, an old
// snapshot) is weighed against the change log by who asks, not here.
//
// # Keys
//
//	curt:NAMESPACE:l:DOMAIN/CODE     a link, as entry.go writes it, for a day at the most
//	curt:NAMESPACE:r:{OWNER}BUCKET   when a bucket is full again, until it is
//	curt:NAMESPACE:r:KIND:BUCKET     the same of a Ledger; of kind creators, links by the minute
//	curt:NAMESPACE:f:                the filter of issued codes, of package codefilter
//	curt:NAMESPACE:bus               the channel; no key
//
// The namespace belongs to one link store, so that several installations may share a
// server. Names of buckets have addresses of clients in them and are therefore known here
// by a keyed hash only.
//
// Read client.go first; then shared.go, bus.go, limiter.go, ledger.go.
package redis
