// Package clicks counts: a click goes as bytes into the [Ring], Capture turns the
// ring into blocks of the click log, and Fold turns the log into roll-ups. From
// the log on, nothing is lost and nothing counts twice.
//
//	handler ─► Ring ─► Capture ─► Log (segments on disk) ─► Fold ─► RollupStore
//
// Read raw.go for what a click is, then ring.go, capture.go, log.go, fold.go.
package clicks
