// Package pending keeps the promise of a create that was answered before its link was written: the link
// is in a log that several machines have, a writer brings it into the link store, and until then this
// process shows it.
//
// A link is pending from the moment at which the log has it until a writer has written it, or has refused
// it for good. The one process that accepted the create knows it meanwhile ([Links]); another one learns of
// it from the store, or from a cache that they share. A restart forgets it, and loses nothing: the log has it.
//
// Read links.go first, then record.go, which has a link as the log keeps it.
package pending
