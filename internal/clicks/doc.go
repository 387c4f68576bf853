// Package clicks counts: a click goes as bytes into the [Ring], [Capture] turns the
// ring into blocks of the click [Log], and [Fold] turns the log into roll-ups. From
// the log on, nothing is lost and nothing counts twice.
//
//	handler ─► Ring ─► Capture ─► Log (segments on disk) ─► Fold ─► RollupStore
//
// What it promises:
//
//   - Record never blocks and never allocates; what finds no room is counted.
//   - A click is in the log 90 ms after its answer and durable 0.9 s later. kill -9
//     loses what is in the ring, a power cut what was not synced.
//   - Fold writes counts and its place in the log in one transaction, never past the
//     log's last fsync, so that after any crash each click counts once.
//   - A block that is damaged on the disk is lost, told and counted, and no other with it;
//     what a death cut short at the log's end is cut off.
//   - Statistics are what is stored plus what Fold holds in memory, in one view:
//     see [Pending] for why that needs no lock over the store.
//   - No address leaves Capture: visitors are keyed hashes, and the key is destroyed
//     after the day. Of headers what statistics show leaves it, unless [Detail] says more.
//   - What a kill takes the next start counts: see [Tally].
//
// Read raw.go for what a click is, then ring.go, capture.go (detail.go, tally.go), log.go (segments.go,
// reader.go, block.go, damage.go), fold.go (aggregate.go, summer.go, writer.go, pending.go) and
// rollupstore.go for the contract of stores, whose proof is clickstest. [Shipper] (ship.go) can
// take Fold's place: it brings the log elsewhere, at least once.
//
// Whoever stops the loops stops those who record first, then Capture, then Fold,
// then the log: each takes over what the one before left.
package clicks
