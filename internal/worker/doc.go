// Package worker brings clicks from Kafka to ClickHouse, each exactly once whatever dies.
//
// A block is a contiguous range of offsets of one partition. Its bounds and what is needed to
// read it in the same way again are committed to the group's coordinator first, which takes a
// commit from nobody who may have lost the partition; then the block is inserted under a token
// that is made of the bounds. So of each partition at most one block is not known to be
// inserted, and whoever has the partition next inserts exactly that one once more, which
// changes nothing when it is there. ARCHITECTURE.md has the proof.
//
// Read partition.go first, which is the protocol; block.go is how a block is read, seen.go what
// tells a click that stands in Kafka twice, session.go how partitions come and go, and
// watermarks.go up to when statistics are complete.
package worker
