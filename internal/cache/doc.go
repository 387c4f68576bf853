// Package cache keeps links in memory in front of the link store, so that a
// redirect of a known link costs no query, and keeps them honest: what was
// announced as changed is never served again in its older form.
//
//	Lookup ─► L1 hit ──────────────────────► answer
//	            │ due ─► refresh queue ─► Run
//	            ├ never issued ────────────► link.ErrNotFound, no link asked for
//	            └ miss ─► flight (one per key) ─► L2 ─► source ─► L1, L2
//	Follow ◄─ change log, bus of other processes ─► Changed
//	Changed ─► floor under flights, L1 entry dropped, codes never issued
//
// Read tiered.go for what a look-up does, flight.go for how a load meets a
// change, held.go for how long an entry is believed, issued.go and polls.go for
// the codes that no link has to be asked for, follow.go and bus.go for changes made by other processes,
// shared.go for what is shared with them, and recent.go for how far that is believed.
//
// # Locks
//
// Each key belongs to one shard. Everything that writes L1 for a key (the end of a
// flight, Changed, the end of a failed load) holds that shard's mutex; reading L1
// holds nothing. Order: shards in ascending order, then otter's own locks; no
// callback of otter takes a shard's mutex. The mutex of recent is held for its own map only.
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
