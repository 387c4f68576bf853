// Package changes keeps the change log of links in DynamoDB: one dense sequence without one hot item.
//
// A write of a link puts a pending entry beside it in its transaction, into one of 16 partitions by
// the link's key. Whoever reads the end of the log numbers what is pending: one transaction moves the
// head, stores a chunk of up to 98 entries and removes their pending items. So a sequence is visible
// only after all lower ones, whenever a writer commits, and writers never meet in one item. Numbers
// are given out by the head's condition: of two that number at once one succeeds.
//
// Entries of one link come in the order of its versions: they are in one partition, which is read from
// its end. What was committed earlier is still to be read when a later version is seen.
//
// Old values of changed fields are items of their own; an entry that a link was deleted is numbered
// only after they are gone. Chunks and old values have a time to live; a reader that finds a hole
// gets link.ErrConflict and starts over.
//
// Read pending.go for what writers store, number.go for the numbering, read.go for readers.
package changes
