// Package clicks says what a click is: [Raw] as the redirect path saw it, and [Click] as
// statistics show it. Its subpackages are the way between the two, in this order:
//
//	handler ─► capture.Ring ─► capture.Capture ─► clicklog.Log (segments on disk)
//	                                                  ├─► fold.Fold ─► rollup.Store
//	                                                  ├─► history.History (clicks one by one)
//	                                                  └─► ship.Shipper ─► Kafka, in place of fold
//
// useragent and headers read what a request's headers say, groups knows the workspaces of
// links, recount checks the log for curt doctor.
//
// What the pipeline promises:
//
//   - Record never blocks and never allocates; a click that finds no room is counted as dropped.
//   - A click is in the log 90 ms after its answer and durable 0.9 s later. kill -9 loses
//     what is in the ring, a power cut what was not synced.
//   - Fold writes counts and its position in the log in one transaction, never past the log's
//     last fsync, so that after any crash each click counts once.
//   - A block that is damaged on the disk is lost, logged and counted, and no other with it; a
//     write that a crash cut short at the log's end is cut off.
//   - Statistics are what is stored plus what Fold holds in memory, in one view:
//     see fold.Pending for why that needs no lock over the store.
//   - No address leaves Capture: visitors are keyed hashes, and the key is destroyed after the
//     day. Of headers only what statistics show leaves it, unless capture.Detail says more.
//   - The next start counts the clicks that a kill took: see capture.Tally.
//
// Shutdown stops the handlers first, then Capture, then Fold, then the log: each takes over
// what the one before left.
//
// Read raw.go first, then capture/ring.go.
package clicks
