// Package zookeeper leases ids in ZooKeeper 3.9: [Leases] is a codegen.Leaser.
//
// A counter is a persistent node whose data is the lowest id that was never leased, in decimal digits. It moves by
// a write that names the version of the node, and by nothing else: whoever read an older value is refused. Nothing hangs on a
// session, so that one that is lost or expired loses no lease and frees none. A write whose answer was lost may have happened:
// its ids belong to nobody.
//
// What ZooKeeper itself forgets (a restored snapshot, a removed node) cannot be seen from here: codegen.Confirmed has
// the link store confirm each lease.
//
// With TLS each connection has it: those of sessions, and those that ask a server about itself. Why there is no connection is part of
// errors and of Healthy, in one line.
//
// Read leases.go first. The package imports contracts only.
package zookeeper
