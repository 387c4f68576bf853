// Package cache keeps links in memory in front of the link store, so that a
// redirect of a known link costs no query, and keeps them honest: what was
// announced as changed is never served again in its older form.
//
//	Lookup ─► L1 hit ──────────────────────► answer
//	            │ due ─► refresh queue ─► Run
//	            ├ never issued ────────────► link.ErrNotFound, no read of the source
//	            └ miss ─► flight (one per key) ─► L2 ─► source ─► L1, L2
//	Follow ◄─ change log, bus of other processes ─► changes
//	changes ─► issued codes, recent, floor under flights, L1 entry dropped
//
// One file for each part of Tiered, whose comment states the part's invariant; tiered.go
// connects them and has the operations:
//
//	l1.go        entries, flights and floors; held.go has an entry and how long it is believed
//	recent.go    how far the change log was heard, and what changed lately
//	polls.go     when the log was read, and look-ups that wait for it
//	changes.go   what a change does to this process
//	l2.go        entries that processes share
//	loader.go    loads, refreshes, answers while the source fails
//	notes.go     the bus
//	follower.go  the change log
//
// Package issued has the codes that no link has to be read for.
//
// # Locks
//
// Each key belongs to one shard of l1. A write of an entry (finish and fail of a flight,
// changed, created, dropAll) holds that shard's mutex; a read holds nothing. Order: shards in
// ascending order, then otter's own locks; no callback of otter takes a shard's mutex. The
// mutexes of recent and polls protect their own fields only: no lock is taken under
// them, and none is held when they are taken.
//
// # Not obvious
//
// L1 is keyed by a seeded 64-bit hash of domain and code, and the entry holds the
// key itself, which every look-up compares: so the bytes of a request find an
// entry without a string being made of them, and two keys of one hash only push
// each other out.
//
// Times inside are nanoseconds on the monotonic clock since New: a clock that is
// set back or forward makes nothing fresh or stale. Only a link's own expiry is
// wall time.
//
// otter runs its maintenance in short goroutines of its own and starts no lasting
// one as long as it is given no expiry; New therefore starts nothing.
package cache
